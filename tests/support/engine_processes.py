"""An engine and its hosts as processes that run jobs on a fleet of databases; a launcher's part is played here.

async with start_processes(settings, db, control, targets, folder) as processes:
    processes.arm({"host.finished": "kill times:1"})       what is to happen to whom; forgets former hits
    async with processes.kept():                           who dies or is stopped is replaced, as a launcher would
        await processes.fleet.run("select 1")
    processes.ends, processes.stops                             what became of them
`control` is the server of the control database, `targets` that of the fleet; they may be the same.
"""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from engine.process.exit_codes import Exit
from fsm.launch.protocol import Kind
from muster.core import failpoints
from muster.core.db import Database
from muster.core.process import PROC
from muster.core.settings import Settings, seconds
from tests.support.engine_fixture import Running, Workloads, start_workloads
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until
from tests.support.postgres import Postgres

HEARTBEAT = 0.25
LEASE = 3 * HEARTBEAT  # of a host, as the core counts it
LOST = """
select
 where not exists (select from jobs_internal.host
                    where host_id = $1 and heartbeat_at + make_interval(secs => $2) > clock_timestamp())
   and not exists (select from jobs_internal.task
                    where host_id = $1 and lifecycle in ('Created', 'InProgress'))
"""


@dataclass
class EngineProcesses:
    workloads: Workloads
    fleet: Fleet
    arms: Path
    epoch: int = 0
    cores: list[Running] = field(default_factory=list)
    hosts: list[Running] = field(default_factory=list)
    ends: list[tuple[Kind, int | None]] = field(
        default_factory=list
    )  # of those that were not asked
    stops: list[Kind] = field(default_factory=list)  # of those that were stopped and woken
    _asleep: list[Running] = field(default_factory=list)  # cores that are stopped

    # Who is there

    async def core(self, **given: Any) -> Running:
        self.epoch += 1
        self.cores.append(await self._start(Kind.ENGINE, given))
        return self.cores[-1]

    async def host(self, **given: Any) -> Running:
        self.hosts.append(await self._start(Kind.HOST, given))
        return self.hosts[-1]

    async def _start(self, kind: Kind, given: dict[str, Any]) -> Running:
        return await self.workloads.start(kind, self.epoch, failpoints=str(self.arms), **given)

    async def begin(self, hosts: int = 2) -> None:
        """In charge, with all hosts known."""
        core = await self.core()
        ids = sorted([str((await self.host()).workload.id) for _ in range(hosts)])
        await self.workloads.until_reports(core, state="live", hosts=ids)

    def host_of(self, task: Any) -> Running:
        return next(each for each in self.hosts if each.workload.id == task["host_id"])

    def log(self) -> str:
        """Of all that ever lived, the newest last."""
        lines = [line for each in self.workloads.running for line in each.log().splitlines()]
        return "\n".join(sorted(lines, key=lambda line: line.partition('"timestamp"')[2])[-150:])

    # Faults

    def arm(self, actions: dict[str, str]) -> None:
        failpoints.arm(self.arms, actions)

    def hits(self) -> dict[str, int]:
        return failpoints.hits(self.arms)

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        keeping = asyncio.create_task(self._keep())
        try:
            yield
            await until(lambda: keeping.done() or self._quiet())
        finally:
            keeping.cancel()
            await asyncio.wait({keeping})
            if not keeping.cancelled():
                keeping.result()  # why nobody was replaced any more

    async def _keep(self) -> None:
        while True:
            for core in list(self.cores):
                if not core.process.alive:
                    await self._replace(core)
                elif is_stopped(core):
                    self.cores.remove(core)
                    self._asleep.append(core)
                    await self.core()
            for host in list(self.hosts):
                if not host.process.alive:
                    await self._replace(host)
                elif is_stopped(host) and await self._lost(host):
                    self._wake(host)
            if self._asleep and await self._in_charge():
                await self._fence(self._asleep.pop())
            await asyncio.sleep(0.02)

    def _quiet(self) -> bool:
        both = [*self.cores, *self.hosts]
        live = all(each.process.alive and not is_stopped(each) for each in both)
        return live and not self._asleep

    async def _replace(self, dead: Running) -> None:
        kind = dead.workload.kind
        self.ends.append((kind, await code(dead)))  # also takes it out of the process table
        await (self.core() if kind is Kind.ENGINE else self.host())
        # Not before: whoever waits until all is quiet would go on with one less.
        (self.cores if kind is Kind.ENGINE else self.hosts).remove(dead)

    async def _in_charge(self) -> bool:
        """The next core lives."""
        return (await self.workloads.report(self.cores[-1])).get("state") == "live"

    async def _fence(self, core: Running) -> None:
        self._wake(core)
        assert await code(core) == Exit.FENCED, core.log()

    def _wake(self, stopped: Running) -> None:
        stopped.send(signal.SIGCONT)
        self.stops.append(stopped.workload.kind)

    async def disowned(self, host: Running) -> None:
        """Silent for longer than its lease, and nothing that it had is its own any more."""
        await until(lambda: self._lost(host))

    async def _lost(self, host: Running) -> bool:
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return await self.fleet.account.fetch(LOST, host.workload.id, LEASE) != []
        return False  # the server is away as well


async def code(dead: Running) -> int | None:
    """Its exit code; a process is over a moment before its parent may know how."""
    await dead.ended()
    await until(lambda: dead.runtime.exit_code(dead.workload.id) is not None)
    return dead.runtime.exit_code(dead.workload.id)


def is_stopped(running: Running) -> bool:
    with contextlib.suppress(OSError):
        stat = (PROC / str(running.pid) / "stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"
    return False


@contextlib.asynccontextmanager
async def start_processes(
    settings: Settings, db: Database, control: Postgres, targets: Postgres, folder: Path, *,
    databases: int = 3, max_connections: int = 20, hosts: int = 2, **given: Any,
) -> AsyncIterator[EngineProcesses]:  # fmt: skip
    arms = folder / "failpoints.json"
    told = {
        "credentialReferences": ["file:"], "hosts": hosts,
        "hostPatience": 20.0, "workload_heartbeat": seconds(HEARTBEAT),
    } | given  # fmt: skip
    async with (
        start_workloads(settings, db, control, folder / "workloads", **told) as running,
        start_fleet(
            settings, db, targets, folder, databases=databases, max_connections=max_connections,
            start=False, account=running.account,
        ) as jobs,
    ):  # fmt: skip
        processes = EngineProcesses(running, jobs, arms)
        # A sequence that was copied is not in the log before: after a crash it would begin anew.
        await running.account.execute("checkpoint")
        processes.arm({})
        await processes.begin(hosts)
        yield processes
