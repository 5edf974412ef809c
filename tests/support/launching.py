"""A queue on a real database whose time a test moves, the Workload API, and launchers."""

import asyncio
import contextlib
import json
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from api import internal
from api.workloads import Services
from fsm.launch import claims
from fsm.launch.monitor import Monitor
from fsm.launch.protocol import BASE, Kind, Priority, Spec
from fsm.launch.queue import Queue
from fsm.launch.tokens import LauncherTokens, start_token
from fsm.launch.workload import NewWorkload, Workload
from muster.core import failpoints
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.failpoints import Crash
from muster.core.process import Process, processes
from muster.core.settings import Settings
from muster.roles import internal as internal_role
from muster.roles import launcher as launcher_role
from tests.support import stub_workload
from tests.support.waiting import timed_out

COLUMNS = (
    "created_at", "queued_at", "visible_at", "claimed_at", "launched_at", "running_at", "heartbeat_at",
    "ended_at", "gone_at", "claim_by", "start_by", "beat_by", "end_by",
)  # fmt: skip
LATER = f"update workload set {', '.join(f'{c} = {c} - $1::interval' for c in COLUMNS)}"
AWAY = "update launcher set heartbeat_at = heartbeat_at - $1::interval"
# How many are starting, at every change that is committed.
COUNTED = """
create table counted (launcher text, priority text, starting bigint);
create function count_starting() returns trigger language plpgsql as $$
begin
    insert into counted
    select claimed_by, priority, count(*) from workload
     where state in ('claimed', 'launched') group by claimed_by, priority;
    return null;
end $$;
create trigger count_starting after update of state on workload
    for each statement execute function count_starting();
"""


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def original(settings: Settings) -> Settings:
    """With the times of the system whose contract this is."""
    return replace(
        settings,
        workload_claim_limit=minutes(30), workload_start_limit=minutes(30),
        workload_first_beat=minutes(10), workload_silent=minutes(10),
        workload_heartbeat=timedelta(seconds=10), workload_redelivery=timedelta(seconds=300),
        monitor_sweep=minutes(1), command_limit=timedelta(hours=4),
    )  # fmt: skip


def quick(settings: Settings, folder: Path, **more: Any) -> Settings:
    """For real processes: beats often, waits little, and whatever the load is."""
    folder.mkdir(exist_ok=True)
    given = dict(
        launcher_dir=folder, launcher_name="L1", launcher_max_load=0.0, launcher_memory=1,
        launcher_memory_reserve=0, internal_listen="127.0.0.1:0",
        workload_heartbeat=timedelta(milliseconds=100), workload_silent=timedelta(seconds=20),
        workload_stop_grace=timedelta(seconds=1), monitor_sweep=timedelta(milliseconds=200),
    )  # fmt: skip
    return replace(settings, **(given | more))


@dataclass
class QueueFixture:
    db: Database
    settings: Settings
    ended: list[Workload] = field(default_factory=list)  # what on_end was told

    def __post_init__(self) -> None:
        self.queue = Queue(self.settings, self._on_end)
        self.monitor = Monitor(self.db, self.queue)

    async def _on_end(self, _tx: Any, workload: Workload) -> None:
        self.ended.append(workload)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        """Waits for locks without limit: on a busy machine many callers of one lock need longer than production allows."""
        async with self.db.transaction() as tx:
            await tx.execute("set local lock_timeout = 0; set local statement_timeout = 0")
            yield tx

    async def enqueue(self, kind: Kind = Kind.ENGINE, *, how: str = "run", **more: Any) -> Workload:
        given = {"launch_group": "default", "spec": Spec(arguments=("--how", how))} | more
        async with self.transaction() as tx:
            return await self.queue.enqueue(tx, NewWorkload(kind=kind, **given))

    async def get(self, what: Workload | UUID) -> Workload:
        return await self.queue.get(self.db, what if isinstance(what, UUID) else what.id)

    async def state(self, what: Workload | UUID) -> str:
        return str((await self.get(what)).state)

    async def launcher(self, name: str = "D1", group: str = "default", **capacity: Any) -> None:
        await claims.register(
            self.db, self.settings, name=name, group=group, home=UUID(int=hash(name) % 2**64),
            capacity=capacity, version="test",
        )  # fmt: skip

    async def take(self, name: str = "D1", priority: Priority = Priority.DEFAULT, group="default"):
        async with self.transaction() as tx:
            return await claims.take(
                tx, self.settings, launcher=name, group=group, priority=priority
            )

    async def claim(self, workload: Workload, name: str = "D1", group: str = "default") -> bool:
        async with self.transaction() as tx:
            won = await claims.claim(tx, self.settings, workload.id, launcher=name, group=group)
        return won is not None

    async def poll(self, quantity: int = 10, priority=Priority.DEFAULT, group="default"):
        async with self.transaction() as tx:
            return await claims.poll(
                tx, self.settings, group=group, priority=priority, quantity=quantity
            )

    async def do(self, move: str, workload: Workload, *args: Any, **more: Any) -> Workload:
        async with self.transaction() as tx:
            return await getattr(self.queue, move)(tx, workload.id, *args, **more)

    async def beat(self, workload: Workload) -> None:
        """Heard just now, whatever was before."""
        await self.do("heartbeat", workload)

    async def at(self, state: str, kind: Kind = Kind.ENGINE, **more: Any) -> Workload:
        """A workload that came as far as `state`, by the moves that lead there."""
        workload = await self.enqueue(kind, **more)
        if state in {"claimed", "launched", "running"}:
            await self.launcher()
            assert await self.claim(workload)
        if state in {"launched", "running"}:
            await self.do("launched", workload)
        if state == "running":
            await self.do("running", workload)
        if state == "success":
            await self.do("success", workload, {}, source="test")
        if state in {"failure", "cancelled"}:
            await self.do(state, workload, reason="requested", source="test")
        return await self.get(workload)

    async def later(self, delay: timedelta, *, launchers_live: bool = True) -> None:
        """Time passes for the rows; the monitor is taken to have been awake."""
        await self.db.execute(LATER, delay)
        if not launchers_live:
            await self.db.execute(AWAY, delay)

    async def sweep(self) -> int:
        """By a monitor that has been awake for long."""
        await self.db.execute(
            "insert into watch values ('monitor', clock_timestamp(), clock_timestamp() - interval '1 h')"
            " on conflict (name) do update set ticked_at = excluded.ticked_at,"
            " judges_from = excluded.judges_from"
        )
        return await self.monitor.sweep()

    async def token(self, workload: Workload) -> str:
        token, digest = start_token(workload.id)
        await self.db.execute(
            "update workload set token_digest = $2 where id = $1", workload.id, digest
        )
        return token

    def launcher_token(self, name: str = "D1", group: str = "default") -> str:
        now = datetime.now(UTC)
        return LauncherTokens(self.settings).make(
            name=name, group=group, now=now, lifetime=minutes(5)
        )

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """The Workload API without a network; by default a launcher speaks."""
        services = Services(
            db=self.db, queue=self.queue, tokens=LauncherTokens(self.settings), clock=Clock()
        )
        transport = httpx.ASGITransport(internal.build(services))
        headers = {"authorization": f"Bearer {token or self.launcher_token()}"}
        return httpx.AsyncClient(
            transport=transport, base_url=f"http://test{BASE}", headers=headers
        )


async def until(true: Callable[[], Any], within: float = 60.0, what: str = "") -> None:
    """Waits for something that another process does: long, for a machine may be busy elsewhere."""
    found = None
    try:
        async with asyncio.timeout(within):
            while True:
                found = true()
                if asyncio.iscoroutine(found):
                    found = await found
                if found:
                    return
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise TimeoutError(timed_out(true, within, found, what)) from error


@contextlib.asynccontextmanager
async def running(role: Callable[..., Any]):
    """A role inside this process, from ready to its end; gives what it told."""
    stop = asyncio.Event()
    told: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(role(stop, lambda what: told.done() or told.set_result(what)))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield told.result()
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


@contextlib.asynccontextmanager
async def workload_api(queue: QueueFixture):
    """Really listening; yields the settings that lead there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    settings = replace(queue.settings, internal_listen=listen)
    stop = asyncio.Event()
    serving = asyncio.create_task(internal_role.serve(settings, queue.db, queue.queue, stop))

    async def answers() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return bool(await client.get("/queue/stats"))
        return False

    try:
        async with httpx.AsyncClient(base_url=f"http://{listen}{BASE}", trust_env=False) as client:
            await until(lambda: serving.done() or answers())
        yield settings
    finally:
        stop.set()
        await asyncio.wait_for(serving, 30)


@contextlib.asynccontextmanager
async def launcher(settings: Settings, program=stub_workload.program, **more: Any):
    def role(stop, ready):
        return launcher_role.run(settings, stop, ready, program=program, **more)

    async with running(role) as told:
        yield told


async def crashing_launcher(settings: Settings, point: str) -> None:
    """A launcher that comes as far as this failpoint and no further."""
    points = settings.launcher_dir / "points.json"
    points.write_text(json.dumps({point: "crash times:1"}))
    armed = replace(settings, failpoints=str(points))
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(20):
                await launcher_role.run(
                    armed, asyncio.Event(), lambda _: None, program=stub_workload.program
                )
    except BaseExceptionGroup as group:
        assert group.subgroup(Crash)
    else:
        raise AssertionError(f"{point} was never reached")
    finally:
        failpoints.setup(None)
        shutil.rmtree(points.with_suffix(".hits"))


def found(folder: Path) -> list[Process]:
    """Processes that were started below this folder."""
    return [each for each in processes() if any(str(folder) in part for part in each.argv)]


@contextlib.asynccontextmanager
async def machine(queue: QueueFixture):
    """The Workload API, and afterwards no process is left; yields settings for launchers."""
    folder = queue.settings.launcher_dir
    try:
        async with workload_api(queue) as settings:
            yield settings
    finally:
        for process in found(folder):
            process.send(signal.SIGKILL)
