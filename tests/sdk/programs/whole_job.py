"""A whole job through the Python SDK, as a user writes it. Run in an environment with nothing but the SDK."""

import sys
from pathlib import Path

from muster_sdk import Client, MusterError
from muster_sdk.errors import Conflict, NotFound, NotModified, PreconditionFailed
from muster_sdk.models import (
    Action,
    Database,
    ExecutionOptions,
    Job,
    JobAccount,
    JobCredential,
    JobStep,
    JobTargetGroup,
    JobUpdate,
    ResourceGroup,
    RunTarget,
    Schedule,
    Server,
    Subscription,
    TargetGroupMember,
)

LOGIN, PASSWORD, FLEET = "fleet_admin", "correct horse", "fleet-1"
FAILS_ONCE = "select 1 / (1 - (current_database() = 'tenant_2' and to_regclass('repaired') is null)::int) as one"


def main(url: str, token: str, ca: str, folder: str) -> None:
    with Client(url, lambda: token, ca=ca) as client:
        client.subscriptions.create_or_update("s1", Subscription(display_name="of the test"))
        group = client.subscription("s1").resource_group("python")
        client.subscription("s1").resource_groups.create_or_update(
            "python", ResourceGroup(location="local")
        )
        assert client.subscription("s1").resource_groups.exists("python")
        assert not client.subscription("s1").resource_groups.exists("nothing")
        creation = group.servers.begin_create_or_update(
            FLEET,
            Server(
                location="local", administrator_login=LOGIN, administrator_login_password=PASSWORD
            ),
        )
        server = creation.result(timeout=120)
        assert creation.status() == "Succeeded"
        assert (server.name, server.provisioning_state) == (FLEET, "Succeeded")
        fleet = client.server(server.id)
        for name in ("jobs", "tenant_1", "tenant_2"):
            fleet.databases.begin_create_or_update(name, Database(location="local")).result(
                timeout=60
            )
        database = fleet.databases.get("jobs")
        made = fleet.accounts.begin_create_or_update(
            "nightly", JobAccount(location="local", database_id=database.id)
        )
        account = client.account(made.result(timeout=120).id)
        assert account.get().state == "Ready"
        definitions(account)
        runs(account, Path(folder))
        refusals(client, account)
        account.begin_delete().result(timeout=120)
        group.begin_delete().result(timeout=120)
        assert not group.exists()


def definitions(account) -> None:
    account.credentials.create_or_update("admin", JobCredential(username=LOGIN, password=PASSWORD))
    place = account.get().id
    members = [
        TargetGroupMember(type="SqlDatabase", server_name=FLEET, database_name=f"tenant_{n}")
        for n in (1, 2)
    ]
    account.target_groups.create_or_update("all", JobTargetGroup(members=members))
    schedule = Schedule(type="Recurring", cron="30 3 * * *", enabled=True)
    job = account.jobs.create_or_update("a job", Job(description="first", schedule=schedule))
    assert (job.name, job.version, job.schedule.cron) == ("a job", 0, "30 3 * * *")
    for name, script in (("first", FAILS_ONCE), ("second", "select current_database() as here")):
        step = JobStep(
            target_group=f"{place}/targetGroups/all",
            credential=f"{place}/credentials/admin",
            action=Action(value=script),
            execution_options=ExecutionOptions(retry_attempts=0),
        )
        account.steps.create_or_update("a job", name, step)
    assert [each.name for each in account.steps.list("a job")] == ["first", "second"]

    again = account.jobs.get("a job")
    assert again.etag
    again.description = "changed"
    account.jobs.create_or_update("a job", again, if_match=again.etag)
    assert account.jobs.get("a job").schedule == job.schedule
    account.jobs.update("a job", JobUpdate(description="once more"))
    account.jobs.update("a job", {"properties": {"schedule": None}})
    shown = account.jobs.get("a job")
    assert (shown.description, shown.schedule.enabled) == ("once more", False), shown
    for n in range(4):
        account.jobs.create_or_update(f"other {n}", Job())
    pages = list(account.jobs.list(page_size=2).by_page())
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [job.name for job in account.jobs.list(page_size=2)] == [
        job.name for page in pages for job in page
    ]


def runs(account, folder: Path) -> None:
    failed = account.jobs.begin_start("a job").result(timeout=60)
    assert failed.lifecycle == "Failed", failed
    [error] = account.executions.list_errors("a job", failed.name)
    assert (error.sqlstate, error.count) == ("22012", 1)
    repair = account.begin_query(
        "create table repaired ()", read_only=False, credential="admin",
        targets=[RunTarget(server_name=FLEET, database_name="tenant_2")],
    )  # fmt: skip
    assert repair.result(timeout=60).lifecycle == "Succeeded"
    rerun = account.executions.begin_rerun("a job", failed.name, only=["failed"])
    assert rerun.result(timeout=60).lifecycle == "Succeeded"
    reached = account.target_executions.list("a job", rerun.execution.name)
    assert {each.target.database_name for each in reached if each.step_name == "first"} == {
        "tenant_2"
    }

    run = account.jobs.begin_start("a job").result(timeout=60)
    [part] = account.executions.get_results("a job", run.name, step="second")
    assert sorted(row[-1] for row in part.rows) == ["tenant_1", "tenant_2"]
    file = folder / "rows.csv"
    account.executions.download_results("a job", run.name, step="second").save(file)
    assert file.read_text().splitlines()[0] == "target_server,target_database,target_schema,here"
    rows = account.executions.download_results(
        "a job", run.name, step="second", format="ndjson"
    ).text()
    assert sorted(rows.count(f'"here":"tenant_{n}"') for n in (1, 2)) == [1, 1], rows
    kinds = [event.kind for event in account.executions.stream_events("a job", run.name)]
    assert (kinds[0], kinds[-1]) == ("runStarted", "runEnded"), kinds
    assert [each.name for each in account.executions.list(top=1)] == [run.name]

    account.steps.create_or_update(
        "other 1", "sleep",
        JobStep(
            target_group=f"{account.get().id}/targetGroups/all", credential=f"{account.get().id}/credentials/admin",
            action=Action(value="select pg_sleep(600)"),
        ),
    )  # fmt: skip
    sleeping = account.jobs.begin_start("other 1")
    assert sleeping.execution.lifecycle == "Created"
    account.executions.cancel("other 1", sleeping.execution.name, reason="the test is over")
    assert sleeping.result(timeout=60).lifecycle == "Canceled"


def refusals(client: Client, account) -> None:
    for wanted, attempt in {
        NotFound: lambda: account.jobs.get("nothing"),
        PreconditionFailed: lambda: account.jobs.create_or_update("a job", Job(), if_match='"0"'),
        NotModified: lambda: account.jobs.get(
            "a job", if_none_match=account.jobs.get("a job").etag
        ),
        Conflict: client.server(account.get().id.partition("/jobAgents")[0]).begin_delete,
    }.items():
        try:
            attempt()
        except wanted as error:
            assert error.code
            assert error.request_id
        except MusterError as error:
            raise AssertionError(f"{wanted} was to come: {error!r}") from error
        else:
            raise AssertionError(f"{wanted} did not come")
    try:
        account.jobs.create_or_update("b", {"properties": {"nothing": 1, "description": 2}})
    except MusterError as error:
        assert error.status == 400
        assert {each.target for each in error.details} == {
            "properties.nothing",
            "properties.description",
        }
    else:
        raise AssertionError("wrong fields were accepted")
    account.jobs.delete("other 0")
    account.jobs.delete("other 0")
    assert "other 0" not in {job.name for job in account.jobs.list()}


if __name__ == "__main__":
    main(*sys.argv[1:])
    print("all went well")
