"""A small control plane around the runner: asks for lives as the workflows do, and owns time.

Time passes by `advance`: every due time, lease and deadline in the database moves towards now, and
the runner's clock moves on. So a real database is used and no test sleeps.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from fsm import machines, operations
from fsm.context import Services
from fsm.lifecycles import LIFECYCLES
from fsm.runner import Runner, Turn
from muster.core.connect import Connector
from muster.core.db import Database
from muster.core.ids import ResourceId
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from tests.support.fake_clock import FakeClock
from tests.support.fake_clusters import FakeClusters
from tests.support.postgres import Postgres

SUBSCRIPTION = ResourceId((("subscriptions", "00000000-0000-0000-0000-0000000000aa"),))

INSERT = """
insert into resource (uid, key, id, type, name, parent_key, subscription_key, group_key, tenant_id,
                      location, properties, sealed, created_by, created_by_type, modified_by,
                      modified_by_type)
values ($1, lower($2), $2, $3, $4, $5, $6, $7, 't', 'local', $8, $9, 'me', 'User', 'me', 'User')
on conflict (key, tenant_id) do nothing
"""
ADVANCE = """
update machine
   set due_at = due_at - $1::interval, lease_until = lease_until - $1::interval,
       deadline_at = deadline_at - $1::interval
"""
NEXT = "select extract(epoch from min(greatest(due_at, lease_until)) - clock_timestamp())::float8 from machine"


def unhurried(settings: Settings) -> Settings:
    """Waiting costs nothing here, so the pauses are those of production."""
    return replace(
        settings, retry_base=timedelta(seconds=1), retry_ceiling=timedelta(minutes=10),
        poll_busy=timedelta(seconds=1),
    )  # fmt: skip


@dataclass
class ResourceHandle:
    """A resource and the operation that was begun for it."""

    id: ResourceId
    uid: UUID
    operation_id: UUID


@dataclass
class Lifecycles:
    db: Database
    settings: Settings
    targets: Postgres
    clusters: FakeClusters
    clock: FakeClock = field(default_factory=FakeClock)
    lifecycles: dict[str, Any] = field(default_factory=lambda: dict(LIFECYCLES))
    runners: int = 0

    @property
    def services(self) -> Services:
        return Services(
            settings=self.settings,
            db=self.db,
            keyring=self.keyring,
            connector=Connector(self.settings),
            lifecycles=self.lifecycles,
            clusters=self.clusters,
            clock=self.clock,
        )

    @property
    def keyring(self) -> Keyring:
        return Keyring(self.settings.keys)

    def runner(self) -> Runner:
        """A new process, so to say."""
        self.runners += 1
        return Runner(self.services, f"runner-{self.runners}")

    # What customers ask for

    async def group(self, name: str = "g") -> tuple[ResourceId, UUID]:
        id = SUBSCRIPTION.child(("resourceGroups", name))
        await self._insert(SUBSCRIPTION, uuid4())
        uid = await self._insert(id, uuid4())
        return id, uid

    async def put_server(
        self, name: str | None = None, *, group: str = "g", **properties: Any
    ) -> ResourceHandle:
        """Embedded unless an endpoint is given; its administrator is called as the server."""
        parent, _ = await self.group(group)
        name = name or f"s{secrets.token_hex(5)}"
        id = parent.child(("providers", "Microsoft.Sql"), ("servers", name))
        given = {"administratorLogin": f"admin_{name}"} | properties
        given = {key: value for key, value in given.items() if value is not None}
        password = given.pop("administratorLoginPassword", "first-password")
        return await self._create(id, "server", given, {"administratorLoginPassword": password})

    async def put_database(
        self, server: ResourceHandle, name: str | None = None, **properties: Any
    ) -> ResourceHandle:
        id = server.id.child(("databases", name or f"d{secrets.token_hex(5)}"))
        return await self._create(id, "database", properties, {})

    async def put_pool(self, server: ResourceHandle, name: str) -> ResourceId:
        id = server.id.child(("elasticPools", name))
        await self._insert(id, uuid4())
        return id

    async def update(
        self, handle: ResourceHandle, *, password: str | None = None, **properties: Any
    ) -> ResourceHandle:
        row = await self.resource(handle)
        previous = {name: row[name] for name in ("properties", "sealed", "tags", "location", "sku")}
        sealed = dict(row["sealed"])
        if password:
            sealed |= self._seal(handle.uid, {"administratorLoginPassword": password})
        async with self.db.transaction() as tx:
            await tx.execute(
                "update resource set properties = $2, sealed = $3 where uid = $1",
                handle.uid,
                {**row["properties"], **properties},
                sealed,
            )
            operation = await self._begin(tx, handle.id, handle.uid, "patch")
            await machines.signal(
                tx,
                uid=handle.uid,
                name="update",
                operation_id=operation,
                payload={"previous": previous},
            )
        return replace(handle, operation_id=operation)

    async def delete(self, handle: ResourceHandle, **payload: Any) -> ResourceHandle:
        async with self.db.transaction() as tx:
            await machines.interrupt(tx, uid=handle.uid)
            operation = await self._begin(tx, handle.id, handle.uid, "delete")
            await machines.signal(
                tx, uid=handle.uid, name="delete", operation_id=operation, payload=payload
            )
        return replace(handle, operation_id=operation)

    async def delete_group(self, name: str = "g") -> ResourceHandle:
        id, _ = await self.group(name)
        uid = await self.db.fetchval("select uid from resource where key = $1", id.key)
        async with self.db.transaction() as tx:
            operation = await self._begin(tx, id, uid, "delete")
            await machines.create(
                tx, uid=uid, lifecycle="resourceGroup", resource_id=id, operation_id=operation
            )
        return ResourceHandle(id, uid, operation)

    # What time does

    async def advance(self, delay: timedelta) -> None:
        self.clock.advance(delay)
        await self.db.execute(ADVANCE, delay)

    async def run(
        self,
        runner: Runner | None = None,
        *,
        until: Callable[[], Awaitable[bool]] | None = None,
        turns: int = 300,
    ) -> None:
        """Until every machine rests or has ended, or until what is waited for has come."""
        runner = runner or self.runner()
        for _ in range(turns):
            if until and await until():
                return
            due = await self.db.fetch(
                "select uid from machine where due_at <= clock_timestamp()"
                " and (lease_until is null or lease_until < clock_timestamp()) order by due_at"
            )
            for row in due:
                await runner.turn(row["uid"])
            if not due:
                seconds = await self.db.fetchval(NEXT)
                if seconds is None:
                    return
                await self.advance(timedelta(seconds=max(seconds, 0.001)))
        raise AssertionError("the machines never came to rest")

    async def step(self, handle: ResourceHandle, runner: Runner | None = None) -> Turn:
        return await (runner or self.runner()).turn(handle.uid)

    # What is there

    async def resource(self, handle: ResourceHandle) -> Any:
        return await self.db.fetchrow("select * from resource where uid = $1", handle.uid)

    async def operation(self, handle: ResourceHandle) -> operations.Operation:
        found = await operations.get(self.db, handle.operation_id)
        assert found is not None
        return found

    async def state(self, handle: ResourceHandle) -> str:
        machine = await machines.get(self.db, handle.uid)
        assert machine is not None
        return machine.state

    async def path(self, handle: ResourceHandle) -> list[str]:
        return [move.to_state for move in await machines.history(self.db, handle.uid)]

    async def databases(self) -> set[str]:
        """On the targets' server, whoever made them."""
        connection = await asyncpg.connect(self.targets.url("postgres", self.targets.root))
        try:
            rows = await connection.fetch("select datname from pg_database where not datistemplate")
            return {row["datname"] for row in rows} - {"postgres"}
        finally:
            await connection.close()

    async def _create(
        self, id: ResourceId, lifecycle: str, properties: dict[str, Any], secret: dict[str, str]
    ) -> ResourceHandle:
        uid = uuid4()
        await self._insert(id, uid, properties, self._seal(uid, secret))
        async with self.db.transaction() as tx:
            operation = await self._begin(tx, id, uid, "put")
            await machines.create(
                tx, uid=uid, lifecycle=lifecycle, resource_id=id, operation_id=operation
            )
        return ResourceHandle(id, uid, operation)

    def _seal(self, uid: UUID, plain: dict[str, str]) -> dict[str, str]:
        return {name: self.keyring.seal(text, f"{uid}/{name}") for name, text in plain.items()}

    async def _insert(
        self,
        id: ResourceId,
        uid: UUID,
        properties: dict[str, Any] | None = None,
        sealed: dict[str, str] | None = None,
    ) -> UUID:
        parent = id.parent.key if id.parent.pairs else None
        group = id.upto("resourceGroups").key if id.resource_group else None
        await self.db.execute(
            INSERT, uid, id.text, id.type, id.name, parent, SUBSCRIPTION.key, group,
            properties or {}, sealed or {},
        )  # fmt: skip
        return uid

    async def _begin(self, tx: Any, id: ResourceId, uid: UUID, verb: str) -> UUID:
        operation = await operations.begin(
            tx,
            resource_id=id,
            resource_uid=uid,
            tenant_id="t",
            location="local",
            verb=verb,
            caller="me",
            correlation_id=str(uuid4()),
        )
        return operation.operation_id
