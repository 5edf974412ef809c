"""schemathesis against the running server: no 5xx, no answer that the document does not know.

A fixed seed makes it repeatable. `make test` runs a short form; MUSTER_TEST_FUZZ=long, or a number
of examples per operation, runs all operations. What lies in an account: test_jobs.py.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from muster.core.settings import Settings
from muster.roles import api
from tests.support import principals
from tests.support import arm
from tests.support import postgres as target
from tests.fuzz.fuzzing import ASKED, fuzz

# In the short form the tenant stands for all scopes where a type can be found at every scope.
ALIKE = "At(Subscription|ResourceGroup|Server|Database|ElasticPool)$"
THERE = {
    "subscriptionId": "s1",
    "resourceGroupName": "g1",
    "serverName": "eu1",
    "databaseName": "d1",
    "elasticPoolName": "p1",
}


@contextmanager
def serving(settings: Settings) -> Iterator[str]:
    """The real server in a thread of its own, so that the fuzzer's process can call it."""
    stop, up, told = asyncio.Event(), threading.Event(), {}

    def ready(address: dict[str, Any]) -> None:
        told.update(address, loop=asyncio.get_running_loop())
        up.set()

    settings = replace(arm.local(settings), listen="127.0.0.1:0")
    thread = threading.Thread(target=lambda: asyncio.run(api.run(settings, stop, ready)))
    thread.start()
    try:
        assert up.wait(20)
        yield told["url"]
    finally:
        told["loop"].call_soon_threadsafe(stop.set)
        thread.join(20)


async def fill(settings: Settings, url: str, fleet: target.Postgres) -> None:
    """Things that exist, on a server that answers."""
    headers = {"Authorization": f"Bearer {arm.TOKEN}"}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers) as call,
        arm.plane(settings) as plane,
    ):
        await arm.put(call, arm.SUBSCRIPTION, {})
        await arm.put(call, arm.GROUP, {"location": "local"})
        boss = fleet.administrator
        body = {
            "location": "local",
            "properties": {
                "administratorLogin": boss.name,
                "administratorLoginPassword": boss.password,
                "endpoint": {"host": fleet.host, "port": fleet.port, "sslMode": "disable"},
            },
        }
        await arm.put(call, arm.SERVER, body)
        async with plane.db.connection() as connection:
            await connection.execute(principals.SETTLE)
        await arm.put(call, f"{arm.SERVER}/databases/d1", {})
        await arm.put(call, f"{arm.SERVER}/elasticPools/p1", {})


@pytest.mark.timeout(3600)
def test_no_answer_surprises(settings: Settings, tmp_path: Path) -> None:
    with target.running() as fleet, serving(settings) as url:
        asyncio.run(fill(settings, url, fleet))
        arguments = [r"--exclude-path-regex=jobAgents/\{jobAgentName\}/"]
        if not ASKED:
            arguments.append(f"--exclude-operation-id-regex={ALIKE}")
        fuzz(url, arm.TOKEN, tmp_path, THERE, *arguments, short=2)
