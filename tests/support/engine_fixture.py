"""One account with a real control database, a real Workload API, and real `muster engine` and `muster host`.

async with start_workloads(settings, db, targets, folder) as workloads:
    engine = await workloads.start(Kind.ENGINE, epoch=1)        a process, as a launcher would start it
    await workloads.until_live(engine)
    await workloads.read()                                      what the control database tells
"""

import asyncio
import base64
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from api.internal import build
from api.server import make
from api.workloads import Services
from engine.process.bootstrap import Bootstrap
from fsm.launch.queue_client import QueueClient
from fsm.launch.protocol import Kind, Spec, Start
from fsm.launch.runtime import Handle
from fsm.launch.runtimes.process import ProcessRuntime
from fsm.launch.tokens import LauncherTokens
from fsm.launch.workload import Workload
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.process import Process
from muster.core.settings import Settings
from muster.roles.api import listen
from nodeagent.protocol import ReadEpoch
from tests.support.control_db import Account, Agent, agent_beside, installed
from tests.support.launching import QueueFixture, until
from tests.support.tcp_proxy import TcpProxy, proxy_to
from tests.support.postgres import Postgres

LAUNCHER = "L1"
PRIVATE_KEY = base64.b64encode(bytes(32)).decode()
GIVEN = {"capacity": 100, "hosts": 2, "partPatience": 5.0, "targetAllow": ["127.0.0.0/8"]}


def quick(settings: Settings, **more: Any) -> Settings:
    given = dict(
        internal_listen="127.0.0.1:0",
        workload_heartbeat=timedelta(milliseconds=100), workload_silent=timedelta(seconds=20),
        host_patience=timedelta(seconds=20), monitor_sweep=timedelta(milliseconds=200),
    )  # fmt: skip
    return replace(settings, **(given | more))


def spec_settings(account: Account, **more: Any) -> dict[str, Any]:
    """As the account's machine writes them."""
    return {
        "endpoint": msgspec.to_builtins(account.endpoint()),
        "database": account.database,
        "user": account.roles.engine,
        **GIVEN,
        **more,
    }


def secrets_of(account: Account) -> dict[str, str]:
    return {"engine_password": account.engine_password, "private_key": PRIVATE_KEY}


@dataclass
class Running:
    """One process of one workload."""

    workload: Workload
    handle: Handle
    runtime: ProcessRuntime

    @property
    def process(self) -> Process:
        assert isinstance(self.handle.mark, Process)
        return self.handle.mark

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        self.process.send(number)

    def log(self) -> str:
        return self.runtime.logs(self.workload.id).decode(errors="replace")

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log lines of this event."""
        found = [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]
        return [line for line in found if line.get("event") == event]

    async def ended(self, within: float = 15.0) -> int | None:
        try:
            async with asyncio.timeout(within):
                await self.runtime.ended(self.handle)
        except TimeoutError:
            raise AssertionError(f"{self.workload.kind} does not end:\n{self.log()}") from None
        return self.runtime.exit_code(self.workload.id)


@dataclass
class Workloads:
    account: Account
    agent: Agent
    queue: QueueFixture
    settings: Settings
    runtime: ProcessRuntime
    to_api: TcpProxy  # what processes speak over; cut one to see what they do
    to_database: TcpProxy
    given: dict[str, Any] = field(default_factory=dict)
    running: list[Running] = field(default_factory=list)

    @property
    def queue_client(self) -> QueueClient:
        return QueueClient(
            db=self.queue.db, queue=self.queue.queue, name=LAUNCHER, group="default",
            home=UUID(int=hash(LAUNCHER) % 2**64),
        )  # fmt: skip

    async def start(self, kind: Kind, epoch: int, **given: Any) -> Running:
        """Enqueued, claimed, armed, started and reported, as a launcher does it."""
        told = spec_settings(self.account, **(self.given | given))
        told["endpoint"]["port"] = self.to_database.port
        workload = await self.queue.enqueue(
            kind, account_uid=self.account.uid, epoch=epoch, spec=Spec(settings=told)
        )
        await self.queue.launcher(LAUNCHER)
        assert await self.queue.claim(workload, LAUNCHER)
        armed = await self.queue_client.arm(workload.id)
        assert armed is not None
        handle = await self.runtime.start(self.order(armed[0], armed[1]))
        await self.queue_client.launched(workload.id)
        self.running.append(Running(workload, handle, self.runtime))
        return self.running[-1]

    def order(self, workload: Workload, token: str, **more: Any) -> Start:
        patience = self.settings.workload_silent
        if workload.kind is Kind.HOST:
            patience = self.settings.host_patience
        return Start(
            id=workload.id, kind=workload.kind, url=f"http://127.0.0.1:{self.to_api.port}", token=token,
            heartbeat=self.settings.workload_heartbeat.total_seconds(),
            patience=patience.total_seconds(), epoch=workload.epoch,
            account_uid=workload.account_uid, spec=workload.spec,
            secrets=secrets_of(self.account),
        )  # fmt: skip

    async def engine(self, epoch: int, **given: Any) -> Running:
        """In charge, and its parts run."""
        engine = await self.start(Kind.ENGINE, epoch, **given)
        await self.until_reports(engine, state="live")
        return engine

    async def host(self, epoch: int, **given: Any) -> Running:
        host = await self.start(Kind.HOST, epoch, **given)
        await self.until_reports(host, state="live")
        return host

    async def pair(self, epoch: int, **given: Any) -> tuple[Running, Running]:
        """An engine and a host of it, both live and known to each other."""
        engine = await self.start(Kind.ENGINE, epoch, **given)
        host = await self.start(Kind.HOST, epoch, **given)
        await self.until_reports(engine, state="live", hosts=[str(host.workload.id)])
        await self.until_reports(host, state="live")
        return engine, host

    async def read(self) -> Any:
        return await self.agent.run(self.account, ReadEpoch())

    async def row(self, running: Running) -> Workload:
        return await self.queue.get(running.workload)

    async def report(self, running: Running) -> dict[str, Any]:
        return (await self.row(running)).report or {}

    async def until_reports(self, running: Running, **wanted: Any) -> None:
        """Its heartbeats to the Workload API say so."""
        await self.until(running, lambda told: wanted.items() <= told.items(), str(wanted))

    async def until(self, running: Running, true: Any, what: str = "") -> None:
        async def asked() -> bool:
            return true(await self.report(running))

        try:
            await until(asked)
        except TimeoutError:
            told = await self.report(running)
            raise AssertionError(f"not {what}: {told}\n{running.log()}") from None


@contextlib.asynccontextmanager
async def start_workloads(
    settings: Settings, db: Database, targets: Postgres, folder: Path, **given: Any
) -> AsyncIterator[Workloads]:
    """`given` stands in the spec of each workload; a Settings field there is the control plane's."""
    ours = {name: given.pop(name) for name in list(given) if name in Settings.__annotations__}
    queue = QueueFixture(db, quick(settings, **ours))
    account = await installed(settings, db, targets)
    async with (
        agent_beside(settings, db) as agent,
        workload_api(queue) as port,
        proxy_to(port) as to_api,
        proxy_to(targets.port) as to_database,
    ):
        runtime = ProcessRuntime(folder, {"PATH": os.environ["PATH"]})
        workloads = Workloads(
            account, agent, queue, queue.settings, runtime, to_api, to_database, given
        )
        try:
            yield workloads
        finally:
            for each in workloads.running:
                each.send(signal.SIGKILL)
                await each.ended()


@contextlib.asynccontextmanager
async def workload_api(queue: QueueFixture) -> AsyncIterator[int]:
    """The real one, without the monitor: nobody but the test judges; yields its port."""
    services = Services(
        db=queue.db, queue=queue.queue, tokens=LauncherTokens(queue.settings), clock=Clock()
    )
    server = make(build(services), None)
    with contextlib.closing(listen("127.0.0.1:0")) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await server.up.wait()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


def bootstrap(account: Account, epoch: int, kind: Kind = Kind.ENGINE, **more: Any) -> Bootstrap:
    """For parts inside the test process."""
    start = Start(
        id=UUID(int=epoch), kind=kind, url="http://nowhere.test", token="t", heartbeat=0.05,
        patience=20.0, epoch=epoch, account_uid=account.uid,
        spec=Spec(settings=spec_settings(account, **more)), secrets=secrets_of(account),
    )  # fmt: skip
    return Bootstrap.of(start)
