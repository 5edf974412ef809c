"""A whole job through the asynchronous form of the Python SDK."""

import asyncio
import sys
from pathlib import Path

from muster_sdk.aio import AccountClient, Client
from muster_sdk.errors import NotFound
from muster_sdk.models import (
    Action,
    Database,
    ExecutionOptions,
    Job,
    JobAccount,
    JobCredential,
    JobStep,
    JobTargetGroup,
    ResourceGroup,
    Server,
    Subscription,
    TargetGroupMember,
)

LOGIN, PASSWORD, FLEET = "fleet_admin", "correct horse", "fleet-2"


async def main(url: str, token: str, ca: str, folder: str) -> None:
    async with Client(url, token, ca=ca) as client:
        await client.subscriptions.create_or_update("s2", Subscription())
        subscription = client.subscription("s2")
        await subscription.resource_groups.create_or_update(
            "async", ResourceGroup(location="local")
        )
        group = subscription.resource_group("async")
        creation = await group.servers.begin_create_or_update(
            FLEET,
            Server(
                location="local", administrator_login=LOGIN, administrator_login_password=PASSWORD
            ),
        )
        await creation.result(timeout=120)
        server = group.server(FLEET)
        made = [
            await server.databases.begin_create_or_update(name, Database(location="local"))
            for name in ("jobs", "tenant_1", "tenant_2")
        ]
        jobs, *_ = await asyncio.gather(*(each.result(timeout=60) for each in made))
        poller = await server.accounts.begin_create_or_update(
            "nightly", JobAccount(location="local", database_id=jobs.id)
        )
        account = client.account((await poller.result(timeout=120)).id)
        await a_run(account, Path(folder))
        await (await account.begin_delete()).result(timeout=120)
        await (await group.begin_delete()).result(timeout=120)
        assert not await group.exists()


async def a_run(account: AccountClient, folder: Path) -> None:
    place = (await account.get()).id
    await account.credentials.create_or_update(
        "admin", JobCredential(username=LOGIN, password=PASSWORD)
    )
    members = [TargetGroupMember(type="SqlDatabase", server_name=FLEET, database_name="tenant_*")]
    await account.target_groups.create_or_update("all", JobTargetGroup(members=members))
    await account.jobs.create_or_update("nightly", Job())
    for name in ("first", "second"):
        step = JobStep(
            target_group=f"{place}/targetGroups/all",
            credential=f"{place}/credentials/admin",
            action=Action(value="select current_database() as here"),
            execution_options=ExecutionOptions(retry_attempts=0),
        )
        await account.steps.create_or_update("nightly", name, step)
    assert [each.name async for each in account.steps.list("nightly", page_size=1)] == [
        "first",
        "second",
    ]

    poller = await account.jobs.begin_start("nightly")
    run, kinds = await asyncio.gather(
        poller.result(timeout=60), events(account, poller.execution.name)
    )
    assert run.lifecycle == "Succeeded", run
    assert (kinds[0], kinds[-1]) == ("runStarted", "runEnded"), kinds
    parts = [
        part async for part in account.executions.get_results("nightly", run.name, step="first")
    ]
    assert sorted(row[-1] for part in parts for row in part.rows) == ["tenant_1", "tenant_2"]
    file = folder / "rows.ndjson"
    await account.executions.download_results(
        "nightly", run.name, step="first", format="ndjson"
    ).save(file)
    assert len(file.read_text().splitlines()) == 2
    rerun = await account.executions.begin_rerun("nightly", run.name, only=["succeeded"])
    assert (await rerun.result(timeout=60)).lifecycle == "Succeeded"
    try:
        await account.jobs.get("nothing")
    except NotFound as error:
        assert error.code == "ResourceNotFound"
    else:
        raise AssertionError("a job that is not there was found")


async def events(account: AccountClient, execution: str) -> list[str]:
    return [event.kind async for event in account.executions.stream_events("nightly", execution)]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    print("all went well")
