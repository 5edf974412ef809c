"""The whole of Muster as a user starts it: one `muster up` in a directory of its own."""

import asyncio
import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
from tests.support.waiting import timed_out

GROUP = "/subscriptions/s1/resourceGroups/g1"
SERVER = GROUP + "/providers/Microsoft.Sql/servers/fleet"
LOGIN = {"administratorLogin": "fleet_admin", "administratorLoginPassword": "correct horse"}


@dataclass(frozen=True)
class Stack:
    folder: Path
    url: str
    token: str
    client: httpx.Client
    ca: str = ""  # file with the authority of its certificate

    def put(self, path: str, body: dict[str, Any], *, wait: bool = True) -> httpx.Response:
        answer = self.client.put(path, json=body)
        assert not answer.is_error, answer.text
        if wait:
            self.follow(answer)
        return answer

    def follow(self, answer: httpx.Response, *, seconds: float = 60) -> dict[str, Any]:
        """The end of a long-running operation."""
        url = answer.headers.get("azure-asyncoperation")
        if url is None:
            return {"status": "Succeeded"}
        return until(lambda: self._ended(url), seconds=seconds)

    def _ended(self, url: str) -> dict[str, Any] | None:
        shown = self.client.get(url, params={}).json()
        return shown if shown["status"] != "InProgress" else None

    def get(self, path: str) -> dict[str, Any]:
        return self.client.get(path).raise_for_status().json()

    def psql(self, database: str, query: str, *args: Any) -> list[asyncpg.Record]:
        """As the administrator of the server, whom every account lets in."""
        at = self.get(SERVER)["properties"]["endpoint"]
        login = {
            "user": LOGIN["administratorLogin"],
            "password": LOGIN["administratorLoginPassword"],
        }

        async def ask() -> list[asyncpg.Record]:
            connection = await asyncpg.connect(
                host=at["host"], port=at["port"], database=database, **login
            )
            try:
                return await connection.fetch(query, *args)
            finally:
                await connection.close()

        return asyncio.run(ask())

    def processes(self, what: str, of: UUID | str = "") -> set[int]:
        """Of this data directory only, and perhaps of one workload."""
        found = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                words = (entry / "cmdline").read_text().split("\0")
                ours = what in words and str(self.folder) in words
                if ours and any(str(of) in word for word in words):
                    found.add(int(entry.name))
        return found


def until(look: Callable[[], Any], *, seconds: float = 30) -> Any:
    """What `look` gives once it gives something; fails when that takes too long."""
    found = None
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(timed_out(look, seconds, found))


@contextlib.contextmanager
def muster_up(folder: Path, *, tls: bool = False, **settings: str) -> Iterator[Stack]:
    data, ready = folder / "data", folder / "ready.json"
    command = ["up", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--ready-file", str(ready)]
    command += ["--tls"] if tls else []
    with (folder / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [sys.executable, "-P", "-m", "muster", *command],
            env=os.environ
            | {"MUSTER_LAUNCHER_MAX_LOAD": "0"}
            | settings,  # a busy machine is no failure
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: ready.exists() or up.poll() is not None, seconds=90)
        assert up.poll() is None, (folder / "up.log").read_text()
        told = json.loads(ready.read_text())
        headers = {"Authorization": f"Bearer {told['token']}"}
        ca = str(data / "tls" / "ca.pem") if tls else ""
        with httpx.Client(
            base_url=told["url"], headers=headers, params={"api-version": "2025-01-01"}, timeout=30,
            verify=ssl.create_default_context(cafile=ca) if tls else True,
        ) as client:  # fmt: skip
            yield Stack(data, told["url"], told["token"], client, ca)
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(timeout=30)


def a_server(stack: Stack) -> None:
    stack.put("/subscriptions/s1", {})
    stack.put(GROUP, {"location": "local"})
    stack.put(SERVER, {"location": "local", "properties": LOGIN})


def an_account(stack: Stack, name: str, **more: Any) -> str:
    """A database and an account on it; its path."""
    stack.put(f"{SERVER}/databases/jobs_{name}", {"location": "local"})
    path = f"{SERVER}/jobAgents/{name}"
    body = {"location": "local", "properties": {"databaseId": f"{SERVER}/databases/jobs_{name}"}}
    answer = stack.put(path, body | more, wait=False)
    assert stack.follow(answer)["status"] == "Succeeded"
    return path


def a_job(stack: Stack, account: str, name: str, script: str, *databases: str) -> None:
    """With one step, on these databases of the server."""
    login = {
        "username": LOGIN["administratorLogin"], "password": LOGIN["administratorLoginPassword"],
    }  # fmt: skip
    members = [
        {"type": "SqlDatabase", "serverName": "fleet", "databaseName": each} for each in databases
    ]
    step = {
        "targetGroup": f"{account}/targetGroups/{name}",
        "credential": f"{account}/credentials/admin",
        "action": {"value": script},
    }
    stack.put(f"{account}/credentials/admin", {"properties": login})
    stack.put(f"{account}/targetGroups/{name}", {"properties": {"members": members}})
    stack.put(f"{account}/jobs/{name}", {"properties": {}})
    stack.put(f"{account}/jobs/{name}/steps/one", {"properties": step})
