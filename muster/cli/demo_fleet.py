"""The fleet of the demo: tenants on embedded servers, one with a schema drift, one that an application has locked."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib import resources
from typing import Any

from muster.core.address_source import embedded
from muster.core.connect import Connector, Endpoint
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries

ADMIN = "fleet_admin"
APPLICATION = "checkout-service"
TEMPLATE = "tenant_template"
TENANTS = 20  # on each server
ANSWER_LIMIT, ANSWER_PAUSE = 60.0, 0.2  # seconds

Q = Queries("muster.cli", "demo.sql")
SCHEMA = (resources.files("muster.cli") / "tenant.sql").read_text(encoding="utf-8")
DRIFT = (
    "alter table public.orders drop column if exists quantity, drop column if exists total_cents"
)
SIZE = "delete from public.orders where order_id > 40 + abs(hashtext(current_database())) % 160"
READ = "select count(*) from public.orders"


@dataclass(frozen=True)
class Tenant:
    server: str
    database: str

    def __str__(self) -> str:
        return f"{self.server}/{self.database}"


class Fleet:
    """Speaks to the servers as their administrator, through the same guarded door as everybody."""

    def __init__(self, database_url: str, password: Secret, servers: dict[str, Any]) -> None:
        self._password = password
        self._endpoints = {
            name: Endpoint(host=at["host"], port=at["port"], ssl_mode="disable")
            for name, at in servers.items()
        }
        own = embedded(*((at["host"], at["port"]) for at in servers.values()))
        self._connector = Connector(Settings(database_url=Secret(database_url)), own)
        names = iter(range(1, TENANTS * len(servers) + 1))
        self.tenants = [
            Tenant(server, f"tenant_{next(names):02}") for server in servers for _ in range(TENANTS)
        ]

    async def furnish(self) -> None:
        """Every tenant has its database; the servers are worked on at the same time."""
        async with asyncio.TaskGroup() as group:
            for server in self._endpoints:
                group.create_task(self._furnish(server))

    async def drift(self, tenant: Tenant) -> None:
        """A schema drift: this tenant was changed by hand."""
        async with self._session(tenant.server, tenant.database) as session:
            await session.execute(DRIFT)

    async def hold(self, tenant: Tenant) -> Connection:
        """An application that reads and forgets to commit: no ALTER TABLE gets past it."""
        session = await self._connector.open(
            self._endpoints[tenant.server],
            user=ADMIN,
            password=self._password,
            application_name=APPLICATION,
            database=tenant.database,
        )
        await session.execute("begin")
        await session.fetchval(READ)
        return session

    def _session(
        self, server: str, database: str = "postgres"
    ) -> AbstractAsyncContextManager[Connection]:
        return self._connector.session(
            self._endpoints[server],
            user=ADMIN,
            password=self._password,
            application_name="muster demo",
            database=database,
        )

    async def wait_until_it_answers(self, server: str) -> None:
        """A server of an earlier demo may still be recovering; raises its last answer after the limit."""
        deadline = time.monotonic() + ANSWER_LIMIT
        while True:
            try:
                async with self._session(server):
                    return
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
            await asyncio.sleep(ANSWER_PAUSE)

    async def _furnish(self, server: str) -> None:
        await self.wait_until_it_answers(server)
        async with self._session(server) as session:
            existing = {row["datname"] for row in await session.fetch(Q.databases)}
            if TEMPLATE not in existing:
                await _copy(session, TEMPLATE, "template1")
            async with self._session(server, TEMPLATE) as inside:
                await inside.execute(SCHEMA)
            await session.execute(await session.fetchval(Q.make_template, TEMPLATE))
            for tenant in self.tenants:
                if tenant.server == server and tenant.database not in existing:
                    await _copy(session, tenant.database, TEMPLATE)
                    async with self._session(server, tenant.database) as inside:
                        await inside.execute(SIZE)


async def _copy(session: Connection, name: str, template: str) -> None:
    await session.execute(await session.fetchval(Q.create_database, name, template))
