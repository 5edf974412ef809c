"""Makes one call with the client of one form and prints what came of it."""

import asyncio
import inspect
import json
import sys
from typing import Any

import muster_sdk
import muster_sdk.aio
from muster_sdk.errors import MusterError

GROUP = {"location": "local"}
ACCOUNT = "/subscriptions/main/resourceGroups/prod/providers/Microsoft.Sql/servers/fleet/jobAgents/nightly"


def called(client: Any, call: str) -> Any:
    groups = client.subscription("main").resource_groups
    account = client.account(ACCOUNT)
    match call:
        case "create":
            return groups.create_or_update("prod", GROUP, if_none_match="*")
        case "create-under-own-key":
            return groups.create_or_update("prod", GROUP, idempotency_key="mine")
        case "change":
            return groups.update("prod", {"tags": {}}, if_match="0")
        case "read":
            return groups.get("prod")
        case "start":
            return account.jobs.start("nightly")
    return account.executions.stream_events("nightly", "1")


async def main(form: str, url: str, call: str) -> Any:
    client: Any = (muster_sdk.Client if form == "sync" else muster_sdk.aio.Client)(url, "token")
    try:
        result = called(client, call)
        if inspect.isawaitable(result):
            result = await result
        if call == "events":
            events = [each async for each in result] if form == "aio" else [*result]
            return [[each.number, each.data["name"]] for each in events]
        return result.name
    except MusterError as error:
        return [error.code, error.status]
    finally:
        closed = client.close()
        if closed is not None:
            await closed


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
