"""The world of a job account: a fake node agent, a real workload queue, engines that are only names."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from fsm import machines
from fsm.context import Services
from fsm.launch import claims
from fsm.launch.protocol import Kind, Priority, Reason
from fsm.launch.queue import Queue
from fsm.launch.tokens import start_token
from fsm.launch.workload import Workload
from fsm.account_monitor import Watch, missing_engines
from muster.core.clock import Clock
from tests.support.fake_agent import FakeAgent
from tests.support.lifecycle_fixture import ResourceHandle, Lifecycles
from workflows import accounts
from workflows.access import Q

NAME = "fake-launcher"


@dataclass
class FakeLauncher:
    """Takes from the real queue; what it 'starts' installs its epoch in the fake control database."""

    lifecycles: "AccountLifecycles"
    alive: dict[UUID, Workload] = field(default_factory=dict)
    started: list[int] = field(default_factory=list)  # epochs of engines, in order
    broken: bool = False  # what it starts fails
    full: bool = False  # it lives and has no room
    version: str = "1.0.0"
    fits: set[str] = field(default_factory=lambda: {"1.0.0"})  # versions that the schema suits

    async def turn(self) -> None:
        """As a launcher's turn: ends what is over, then starts what it may."""
        lifecycles = self.lifecycles
        await self._end()
        await claims.register(
            lifecycles.db, lifecycles.settings, name=NAME, group=lifecycles.settings.launcher_group,
            home=UUID(int=7), capacity={}, version=self.version,
        )  # fmt: skip
        while not self.full and (workload := await self._take()):
            await self._start(workload)

    async def kill(self, heard_by: Queue | None = None) -> None:
        """`kill -9` of the engines, seen at once by their launcher."""
        for engine in self.engines():
            await self._gone(engine.id, -9, heard_by)

    def engines(self) -> list[Workload]:
        return [each for each in self.alive.values() if each.kind is Kind.ENGINE]

    async def _end(self) -> None:
        for workload in await claims.mine(self.lifecycles.db, NAME):
            if workload.state.over:
                await self._gone(workload.id, 0)

    async def _gone(self, id: UUID, code: int, queue: Queue | None = None) -> None:
        self.alive.pop(id, None)
        async with self.lifecycles.db.transaction() as tx:
            await (queue or self.lifecycles.queue).gone(tx, id, NAME, code)

    async def _take(self) -> Workload | None:
        async with self.lifecycles.db.transaction() as tx:
            return await claims.take(
                tx, self.lifecycles.settings, launcher=NAME,
                group=self.lifecycles.settings.launcher_group, priority=Priority.DEFAULT,
            )  # fmt: skip

    async def _start(self, workload: Workload) -> None:
        lifecycles, queue, id = self.lifecycles, self.lifecycles.queue, workload.id
        _, digest = start_token(id)
        async with lifecycles.db.transaction() as tx:
            assert await claims.arm(tx, id, launcher=NAME, digest=digest)
            await queue.launched(tx, id)
        self.alive[id] = workload
        if workload.kind is Kind.ENGINE:
            assert workload.epoch is not None
            self.started.append(workload.epoch)
        async with lifecycles.db.transaction() as tx:
            await queue.running(tx, id, {"version": self.version})
        why = self._why_not(workload)
        if why is not None:
            async with lifecycles.db.transaction() as tx:
                await queue.failure(tx, id, reason=Reason.REPORTED, source="workload", message=why)
            await self._gone(id, 1)

    def _why_not(self, workload: Workload) -> str | None:
        """The last word of what can't begin, as a real engine says it."""
        if workload.kind is Kind.ENGINE and self.version not in self.fits:
            needs = f"which needs {min(self.fits)}"
            return f"Incompatible: engine {self.version} is too old for this schema, {needs}."
        if self.broken or not self._comes_up(workload):
            return "the engine can't begin"
        return None

    def _comes_up(self, workload: Workload) -> bool:
        if workload.kind is not Kind.ENGINE:
            return True
        assert workload.epoch is not None and workload.account_uid is not None
        control = self.lifecycles.agent.of(workload.account_uid)
        return control.install_epoch(workload.epoch, workload.id, Clock().now())


@dataclass
class AccountLifecycles(Lifecycles):
    agent: FakeAgent = field(default_factory=FakeAgent)

    def __post_init__(self) -> None:
        self.launcher = FakeLauncher(self)
        self.watch = Watch(self.services)

    @property
    def queue(self) -> Queue:
        return Queue(self.settings, missing_engines(self.settings, self.lifecycles))

    @property
    def services(self) -> Services:
        return replace(super().services, agent=self.agent, queue=self.queue)

    async def advance(self, delay: timedelta) -> None:
        """Launchers go on while machines wait."""
        await super().advance(delay)
        await self.launcher.turn()

    async def put_account(
        self, sku: str = "JA100", name: str = "jobs", **server: Any
    ) -> ResourceHandle:
        """On a server and a database that are only rows: the agent is where they would be."""
        parent, _ = await self.group()
        given = {"administratorLogin": "admin"} | server
        server_id = parent.child(("providers", "Microsoft.Sql"), ("servers", "s1"))
        server_uid = uuid4()
        endpoint = {"host": "127.0.0.1", "port": 9, "sslMode": "disable"}
        properties = {"endpoint": endpoint} | {k: v for k, v in given.items() if v is not None}
        secret = self._seal(server_uid, {"administratorLoginPassword": "secret"})
        await self._insert(server_id, server_uid, properties, secret)
        database = server_id.child(("databases", f"control-of-{name}"))
        await self._insert(database, uuid4())
        self.agent.create(server_id.key, database.name)
        uid, id = uuid4(), server_id.child(("jobAgents", name))
        born = accounts.birth()
        await self._insert(id, uid, {"databaseId": database.text}, self._seal(uid, born.secrets))
        await self._set_sku(self.db, uid, sku)
        await self.db.execute(Q.allow_own_server, uid, "test")
        async with self.db.transaction() as tx:
            operation = await self._begin(tx, id, uid, "put")
            await machines.create(
                tx, uid=uid, lifecycle="account", resource_id=id, operation_id=operation,
                scratch=born.scratch,
            )  # fmt: skip
        return ResourceHandle(id, uid, operation)

    async def resize(self, handle: ResourceHandle, sku: str) -> ResourceHandle:
        row = await self.resource(handle)
        previous = {name: row[name] for name in ("properties", "sealed", "tags", "location", "sku")}
        async with self.db.transaction() as tx:
            await self._set_sku(tx, handle.uid, sku)
            operation = await self._begin(tx, handle.id, handle.uid, "patch")
            await machines.signal(
                tx, uid=handle.uid, name="update", operation_id=operation,
                payload={"previous": previous},
            )  # fmt: skip
        return replace(handle, operation_id=operation)

    async def acknowledge(self, handle: ResourceHandle) -> None:
        """What is shown, as the action does it."""
        payload = {"acknowledged": await self.conditions(handle)}
        async with self.db.transaction() as tx:
            await machines.signal(tx, uid=handle.uid, name="acknowledge", payload=payload)

    async def conditions(self, handle: ResourceHandle) -> list[str]:
        observed = (await self.resource(handle))["observed"]
        return [each["type"] for each in observed.get("conditions") or []]

    async def workloads(self, handle: ResourceHandle) -> list[Workload]:
        return await self.queue.of_account(self.db, handle.uid)

    async def _set_sku(self, tx: Any, uid: UUID, name: str) -> None:
        sku = {"name": name, "capacity": int(name.removeprefix("JA"))}
        await tx.execute("update resource set sku = $2 where uid = $1", uid, sku)
