// A whole job through the TypeScript SDK, as a user writes it; compiled strictly in a folder that has only the package.
import {
  type AccountClient,
  Client,
  type Event,
  type Job,
  MusterError,
  NotFound,
  NotModified,
  PreconditionFailed,
  TimedOut,
} from "@muster/sdk";

const login = { username: "fleet_admin", password: "correct horse" };
const failsOnce =
  "select 1 / (1 - (current_database() = 'tenant_2' and to_regclass('repaired') is null)::int) as one";

function same(shown: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(shown), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
}

async function main(url: string, token: string): Promise<void> {
  const client = new Client(url, { token: () => Promise.resolve(token) });
  await client.subscriptions.createOrUpdate("s3", { displayName: "of the test" });
  const groups = client.subscription("s3").resourceGroups;
  await groups.createOrUpdate("typescript", { location: "local" });
  same([await groups.exists("typescript"), await groups.exists("nothing")], [true, false]);
  const group = client.subscription("s3").resourceGroup("typescript");
  const creation = await group.servers.beginCreateOrUpdate("fleet-3", {
    location: "local",
    administratorLogin: login.username,
    administratorLoginPassword: login.password,
  });
  const server = await creation.result({ timeout: 120 });
  same([server.name, server.provisioningState, await creation.status()], ["fleet-3", "Succeeded", "Succeeded"]);
  const fleet = client.server(server.id);
  for (const name of ["jobs", "tenant_1", "tenant_2"]) {
    await (await fleet.databases.beginCreateOrUpdate(name, { location: "local" })).result({ timeout: 60 });
  }
  const { id: databaseId } = await fleet.databases.get("jobs");
  const made = await fleet.accounts.beginCreateOrUpdate("nightly", { location: "local", databaseId });
  const account = client.account((await made.result({ timeout: 120 })).id);
  await definitions(account);
  await runs(account);
  await refusals(account);
  await (await account.beginDelete()).result({ timeout: 120 });
  await (await group.beginDelete()).result({ timeout: 120 });
  same(await group.exists(), false);
}

async function definitions(account: AccountClient): Promise<void> {
  const { id } = await account.get();
  await account.credentials.createOrUpdate("admin", login);
  await account.targetGroups.createOrUpdate("all", {
    members: [1, 2].map((n) => ({ type: "SqlDatabase", serverName: "fleet-3", databaseName: `tenant_${n}` })),
  });
  const schedule = { type: "Recurring", cron: "30 3 * * *", enabled: true };
  const job: Job = await account.jobs.createOrUpdate("a job", { description: "first", schedule });
  same([job.name, job.version, job.schedule?.cron], ["a job", 0, "30 3 * * *"]);
  for (const [name, value] of [["first", failsOnce], ["second", "select current_database() as here"]] as const) {
    await account.steps.createOrUpdate("a job", name, {
      targetGroup: `${id}/targetGroups/all`,
      credential: `${id}/credentials/admin`,
      action: { value },
      executionOptions: { retryAttempts: 0 },
    });
  }
  const again = await account.jobs.get("a job");
  await account.jobs.createOrUpdate("a job", { ...again, description: "changed" }, { ifMatch: again.etag });
  await account.jobs.update("a job", { schedule: null });
  const shown = await account.jobs.get("a job");
  same([shown.description, shown.schedule?.enabled], ["changed", false]);
  for (const n of [1, 2]) await account.jobs.createOrUpdate(`other ${n}`, {});
  const pages: number[] = [];
  for await (const page of account.jobs.list({ pageSize: 2 }).byPage()) pages.push(page.length);
  same(pages, [2, 1]);
  same((await account.jobs.list({ pageSize: 1 }).toArray()).length, 3);
}

async function runs(account: AccountClient): Promise<void> {
  const failed = await (await account.jobs.beginStart("a job")).result({ timeout: 60 });
  same(failed.lifecycle, "Failed");
  const [error] = await account.executions.listErrors("a job", failed.name).toArray();
  same([error?.sqlstate, error?.count], ["22012", 1]);
  const repair = await account.beginQuery("create table repaired ()", {
    readOnly: false,
    credential: "admin",
    targets: [{ serverName: "fleet-3", databaseName: "tenant_2" }],
  });
  same((await repair.result({ timeout: 60 })).lifecycle, "Succeeded");
  const rerun = await account.executions.beginRerun("a job", failed.name, { only: ["failed"] });
  const { name: run, lifecycle } = await rerun.result({ timeout: 60 });
  same(lifecycle, "Succeeded");
  const rows: unknown[] = [];
  for await (const part of account.executions.getResults("a job", run, { step: "second" })) {
    rows.push(...part.rows.map((row) => row.at(-1)));
  }
  same(rows, ["tenant_1", "tenant_2"].filter((each) => rows.includes(each)));
  const file = await account.executions.downloadResults("a job", run, { step: "second", format: "csv" }).text();
  same(file.split("\r\n")[0], "target_server,target_database,target_schema,here");
  const seen: Event[] = [];
  for await (const event of account.executions.streamEvents("a job", run)) seen.push(event);
  same([seen[0]?.kind, seen.at(-1)?.kind], ["runStarted", "runEnded"]);

  const { id } = await account.get();
  await account.steps.createOrUpdate("other 1", "sleep", {
    targetGroup: `${id}/targetGroups/all`,
    credential: `${id}/credentials/admin`,
    action: { value: "select pg_sleep(600)" },
  });
  const sleeping = await account.jobs.beginStart("other 1");
  await refused(TimedOut, () => sleeping.result({ timeout: 1 }));
  const reason = new Error("no longer wanted");
  await refused(Error, () => sleeping.result({ signal: AbortSignal.abort(reason) }), reason.message);
  await account.executions.cancel("other 1", sleeping.execution.name);
  same((await sleeping.result({ timeout: 60 })).lifecycle, "Canceled");
}

async function refusals(account: AccountClient): Promise<void> {
  const { etag } = await account.jobs.get("a job");
  await refused(NotFound, () => account.jobs.get("nothing"));
  await refused(PreconditionFailed, () => account.jobs.createOrUpdate("a job", {}, { ifMatch: '"0"' }));
  await refused(NotModified, () => account.jobs.get("a job", { ifNoneMatch: etag }));
  const error = await refused(MusterError, () =>
    account.jobs.createOrUpdate("b", { descriptoin: "", priorty: 1 } as object),
  );
  const targets = error.details.map((each) => each.target).sort();
  same([error.status, targets], [400, ["properties.descriptoin", "properties.priorty"]]);
  // @ts-expect-error a property that jobs do not have
  void (() => account.jobs.createOrUpdate("b", { descriptoin: "" }));
  // @ts-expect-error a name is text
  void (() => account.jobs.get(1));
  // @ts-expect-error a schedule may be missing
  void (async () => (await account.jobs.get("a job")).schedule.cron);
}

async function refused<E extends Error>(
  kind: abstract new (...given: never[]) => E,
  attempt: () => Promise<unknown>,
  message = "",
): Promise<E> {
  try {
    await attempt();
  } catch (error) {
    if (error instanceof kind && error.message.includes(message)) return error;
    throw error;
  }
  throw new Error(`${kind.name} did not come`);
}

const [url, token] = process.argv.slice(2);
await main(url ?? "", token ?? "");
console.log("all went well");
