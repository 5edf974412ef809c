// Makes one call and prints what came of it.
import { Client, MusterError } from "@muster/sdk";

const [url = "", call = ""] = process.argv.slice(2);
const client = new Client(url, { token: "token" });
const groups = client.subscription("main").resourceGroups;
const account = client.account(
  "/subscriptions/main/resourceGroups/prod/providers/Microsoft.Sql/servers/fleet/jobAgents/nightly",
);
const group = { location: "local" };

async function called(): Promise<unknown> {
  switch (call) {
    case "create":
      return (await groups.createOrUpdate("prod", group, { ifNoneMatch: "*" })).name;
    case "create-under-own-key":
      return (await groups.createOrUpdate("prod", group, { idempotencyKey: "mine" })).name;
    case "change":
      return (await groups.update("prod", { tags: {} }, { ifMatch: "0" })).name;
    case "read":
      return (await groups.get("prod")).name;
    case "start":
      return (await account.jobs.start("nightly")).name;
  }
  const events = [];
  for await (const each of account.executions.streamEvents("nightly", "1")) {
    events.push([each.number, each.data["name"]]);
  }
  return events;
}

try {
  console.log(JSON.stringify(await called()));
} catch (error) {
  if (!(error instanceof MusterError)) throw error;
  console.log(JSON.stringify([error.code, error.status]));
}
