"""Job accounts on the whole stack: REST, FSM, node agent and launcher in one thread, real engines.

with start_control_plane(settings, targets, folder) as control_plane:
    control_plane.create("a")            a database and an account linked to it, Ready
    control_plane.show("a")              what GET shows
    control_plane.until(lambda: …)       waits for something that other processes do

async with start_separate_roles(settings, targets, folder) as (here, processes):     a process for each role
"""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx

from muster.core.process import Process
from muster.core.settings import Secret, Settings
from muster.roles import launcher, nodeagent
from tests.support.launching import found
from tests.support.postgres import Postgres
from tests.support.processes import Processes, kept
from tests.support.running_api import TOKEN, VERSION, Running, serve_in_thread, free_port
from tests.support.waiting import timed_out

GROUP = "/subscriptions/s1/resourceGroups/g1"
SERVER = f"{GROUP}/providers/Microsoft.Sql/servers/srv"


def quick(settings: Settings, folder: Path, **more: Any) -> Settings:
    """Beats often, looks often, and whatever the load is; what was started ends with the launcher."""
    given = dict(
        launcher_dir=folder, launcher_name="L1", launcher_drain=True, launcher_max_load=0.0,
        launcher_memory=1, launcher_memory_reserve=0, node_agent_listen="127.0.0.1:0",
        internal_listen=f"127.0.0.1:{free_port()}",
        lease=timedelta(seconds=10), step_limit=timedelta(seconds=9),
        account_check=timedelta(milliseconds=500), monitor_sweep=timedelta(milliseconds=300),
        workload_heartbeat=timedelta(milliseconds=300), workload_silent=timedelta(seconds=20),
    )  # fmt: skip
    return replace(settings, **(given | more))


@dataclass
class ControlPlane:
    plane: Running
    targets: Postgres
    folder: Path
    http: httpx.Client

    def prepare(self) -> None:
        role = self.targets.administrator
        endpoint = {"host": self.targets.host, "port": self.targets.port, "sslMode": "disable"}
        properties = {
            "endpoint": endpoint, "administratorLogin": role.name,
            "administratorLoginPassword": role.password, "deletionPolicy": "Drop",
        }  # fmt: skip
        self.put("/subscriptions/s1", {})
        self.put(GROUP, {"location": "local"})
        self.put(SERVER, {"location": "local", "properties": properties})
        self.until(lambda: self.get(SERVER)["properties"]["provisioningState"] == "Succeeded")

    # What a customer does

    def put(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.http.put(path, json=body).raise_for_status()

    def get(self, path: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.http.get(path).raise_for_status().json()
        return shown

    def database(self, *names: str) -> None:
        for name in names:
            body = {"location": "local", "properties": {"deletionPolicy": "Drop"}}
            self.put(f"{SERVER}/databases/{control(name)}", body)
        for name in names:
            path = f"{SERVER}/databases/{control(name)}"
            self.until(
                lambda path=path: self.get(path)["properties"]["provisioningState"] == "Succeeded"
            )

    def begin(self, name: str, sku: str = "JA100") -> httpx.Response:
        database = f"{SERVER}/databases/{control(name)}"
        body = {
            "location": "local",
            "sku": {"name": sku},
            "properties": {"databaseId": database},
        }
        return self.put(account(name), body)

    def create(self, *names: str) -> None:
        self.database(*names)
        for name in names:
            self.begin(name)
        for name in names:
            self.until_state(name, "Ready")

    def resize(self, name: str, sku: str) -> httpx.Response:
        body = {"sku": {"name": sku}}
        return self.http.patch(account(name), json=body).raise_for_status()

    def delete(self, name: str, **query: str) -> httpx.Response:
        return self.http.delete(account(name), params=VERSION | query).raise_for_status()

    def operation(self, begun: httpx.Response) -> dict[str, Any]:
        return self.get(begun.headers["azure-asyncoperation"])

    def ended(self, begun: httpx.Response) -> dict[str, Any]:
        """The operation, once it is over."""
        self.until(lambda: self.operation(begun)["status"] != "InProgress")
        return self.operation(begun)

    def acknowledge(self, name: str) -> None:
        self.http.post(f"{account(name)}/acknowledge").raise_for_status()

    def show(self, name: str) -> dict[str, Any]:
        properties: dict[str, Any] = self.get(account(name))["properties"]
        return properties

    def gone(self, name: str) -> bool:
        return self.http.get(account(name)).status_code == httpx.codes.NOT_FOUND

    def conditions(self, name: str) -> list[str]:
        return [each["type"] for each in self.show(name).get("conditions") or []]

    # What is there

    def answers(self) -> bool:
        try:
            return self.http.get("/livez").is_success
        except httpx.TransportError:
            return False

    def until(self, true: Callable[[], Any], within: float = 60.0) -> None:
        end = time.monotonic() + within
        while not true():
            assert time.monotonic() < end, f"{timed_out(true, within, False)}: {self.told()}"
            time.sleep(0.05)

    def until_state(self, name: str, state: str) -> None:
        self.until(lambda: self.show(name)["state"] == state)

    def metadata(self, query: str, *args: Any) -> list[Any]:
        return sql(self.plane.settings.database_url.reveal(), query, *args)

    def control(self, name: str, query: str, *args: Any) -> list[Any]:
        return sql(self.targets.url(control(name), self.targets.root), query, *args)

    def server(self, query: str, *args: Any) -> list[Any]:
        return sql(self.targets.url("postgres", self.targets.root), query, *args)

    def uid(self, name: str) -> Any:
        return self.metadata("select uid from resource where key = $1", account(name).lower())[0][0]

    def processes(self) -> list[Process]:
        return found(self.folder)

    def process(self, name: str, kind: str = "engine") -> Process | None:
        """The one that runs for this account now."""
        rows = self.metadata(
            "select id from workload where labels ->> 'account' = $1 and kind = $2"
            " and state = 'running'",
            name, kind,
        )  # fmt: skip
        ids = [str(row["id"]) for row in rows]
        for process in self.processes():
            if any(id in part for part in process.argv for id in ids):
                return process
        return None

    def exit_code(self, epoch: int) -> int | None:
        """Of the engine that had this epoch, once its launcher knows."""
        query = "select exit_code from workload where kind = 'engine' and epoch = $1"
        code: int | None = self.metadata(query, epoch)[0][0]
        return code

    def nothing_left(self, uid: Any) -> None:
        """Of an account that is gone."""
        assert self.processes() == []
        assert {path.suffix for path in (self.folder / "workloads").iterdir()} == {""}
        assert self.metadata("select id from workload where account_uid = $1", uid) == []
        assert self.metadata("select uid from resource where uid = $1", uid) == []
        assert self.server("select from pg_roles where rolname like $1", f"muster_{uid.hex}%") == []

    def logged(self, event: str) -> list[dict[str, Any]]:
        """These lines of all engines and hosts, in the order of time."""
        files = (self.folder / "logs" / "workloads").glob("*.log")
        lines = [line for file in files for line in file.read_text().splitlines()]
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return sorted(
            (each for each in found if each["event"] == event), key=lambda each: each["timestamp"]
        )

    def told(self) -> str:
        """For whoever wonders why a test failed."""
        machines = self.metadata(
            "select resource_id, state, waiting_for, last_error from machine where ended_at is null"
        )
        workloads = self.metadata("select kind, epoch, state, reason, message from workload")
        rows = "\n".join(str(dict(row)) for row in [*machines, *workloads])
        logs = sorted((self.folder / "logs" / "workloads").glob("*.log"))
        ours = self.folder.glob("log")
        return rows + "\n" + "\n".join(each.read_text()[-2000:] for each in [*ours, *logs[-3:]])


def account(name: str) -> str:
    return f"{SERVER}/jobAgents/{name}"


def control(name: str) -> str:
    return f"control_{name}"


def sql(url: str, query: str, *args: Any) -> list[Any]:
    async def ask() -> list[Any]:
        connection = await asyncpg.connect(url, timeout=10)
        try:
            rows: list[Any] = await connection.fetch(query, *args)
            return rows
        finally:
            await connection.close()

    return asyncio.run(ask())


@contextlib.contextmanager
def start_control_plane(
    settings: Settings, targets: Postgres, folder: Path, *, own_launcher: bool = True, **more: Any
) -> Iterator[ControlPlane]:
    roles = (nodeagent, launcher) if own_launcher else (nodeagent,)
    folder.mkdir()
    try:
        with (
            serve_in_thread(quick(settings, folder, **more), *roles) as plane,
            plane.client() as http,
        ):
            control_plane = ControlPlane(plane, targets, folder, http)
            control_plane.prepare()
            yield control_plane
    finally:
        asyncio.run(sweep(targets, folder))


@contextlib.asynccontextmanager
async def start_separate_roles(
    settings: Settings, targets: Postgres, folder: Path, **more: Any
) -> AsyncIterator[tuple[ControlPlane, Processes]]:
    folder.mkdir()
    listen = f"127.0.0.1:{free_port()}"
    settings = quick(settings, folder, listen=listen, local_token=Secret(TOKEN), **more)
    plane = Running(f"http://{listen}", settings)
    try:
        async with kept(settings, folder, "api", "fsm", "fsm", "nodeagent", "launcher") as made:
            with plane.client() as http:
                control_plane = ControlPlane(plane, targets, folder, http)
                await asyncio.to_thread(control_plane.until, control_plane.answers)
                await asyncio.to_thread(control_plane.prepare)
                yield control_plane, made
    finally:
        await sweep(targets, folder)


async def sweep(targets: Postgres, folder: Path) -> None:
    """The server of the tests is shared: databases and roles of accounts go with their test."""
    for process in found(folder):
        process.send(signal.SIGKILL)
    connection = await asyncpg.connect(targets.url("postgres", targets.root))
    try:
        databases = "select datname from pg_database where datname like 'control\\_%'"
        for row in await connection.fetch(databases):
            await connection.execute(f'drop database "{row[0]}" with (force)')
        # Owners last: they may have let others into the groups. Those of a database that stays, stay.
        roles = (
            "select rolname from pg_roles where rolname ~ '^muster_[0-9a-f]{32}_'"
            " order by rolname like '%owner'"
        )
        for row in await connection.fetch(roles):
            with contextlib.suppress(asyncpg.DependentObjectsStillExistError):
                await connection.execute(f'drop role "{row[0]}"')
    finally:
        await connection.close()
