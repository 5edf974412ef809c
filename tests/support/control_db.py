"""Control databases on the targets' server, and a node agent in this process that works in them.

async with agent_beside(settings, db) as agent: ...      the whole service, called over ASGI
account = await a_control_database(targets)              a fresh database of the plain administrator
await agent.install(account)                             as the control plane would ask for it
await account.connect("engine")                          a session as one of the account's roles
"""

import base64
import contextlib
import dataclasses
import os
import secrets
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx

from muster.core.clock import Clock
from muster.core.connect import Connector, Endpoint
from muster.core.db import Database
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from nodeagent import client
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.client import AgentClient
from nodeagent.control_db import ControlDatabases
from nodeagent.protocol import InstallSchema, Login, Roles, SchemaInstalled
from nodeagent.registry import Registration
from nodeagent.server import build
from nodeagent.invocation import Services
from tests.support.postgres import Postgres, Role

SERVER = "/subscriptions/s1/resourcegroups/g1/providers/microsoft.sql/servers/eu1"
URL = "http://agent.test"


@dataclass
class Account:
    """What the control plane knows of an account and its control database."""

    targets: Postgres
    database: str
    administrator: Role
    uid: UUID = field(default_factory=uuid4)
    identity: UUID = field(default_factory=uuid4)
    public_key: str = field(default_factory=lambda: base64.b64encode(os.urandom(32)).decode())
    agent_password: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    engine_password: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def roles(self) -> Roles:
        return Roles.of(self.uid)

    def endpoint(self) -> Endpoint:
        return Endpoint(host=self.targets.host, port=self.targets.port, ssl_mode="disable")

    def login(self, keyring: Keyring, role: str = "administrator") -> Login:
        who = self.role(role)
        return client.login(
            keyring, self.uid, server=SERVER, endpoint=self.endpoint(), database=self.database,
            user=who.name, password=Secret(who.password),
        )  # fmt: skip

    def role(self, name: str) -> Role:
        return {
            "administrator": self.administrator,
            "root": self.targets.root,
            "agent": Role(self.roles.agent, self.agent_password),
            "engine": Role(self.roles.engine, self.engine_password),
        }[name]

    def install(self, keyring: Keyring) -> InstallSchema:
        return InstallSchema(
            identity=self.identity,
            public_key=self.public_key,
            agent_password=client.seal(
                keyring, self.uid, "agent_password", Secret(self.agent_password)
            ),
            engine_password=client.seal(
                keyring, self.uid, "engine_password", Secret(self.engine_password)
            ),
        )

    async def connect(self, role: str, database: str | None = None) -> asyncpg.Connection:
        return await asyncpg.connect(
            self.targets.url(database or self.database, self.role(role)), timeout=5
        )

    async def fetch(self, query: str, *args: Any, role: str = "root") -> list[asyncpg.Record]:
        connection = await self.connect(role)
        try:
            return await connection.fetch(query, *args)
        finally:
            await connection.close()

    async def execute(self, statement: str, role: str = "root") -> None:
        connection = await self.connect(role)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def state(self) -> dict[str, Any]:
        """Everything that a repeated command must leave as it is."""
        connection = await self.connect("root")
        try:
            names = await connection.fetch(
                "select c.relname from pg_class c join pg_namespace n on n.oid = relnamespace"
                " where nspname = 'jobs_internal' and relkind = 'r' order by 1"
            )
            tables = {
                row["relname"]: await connection.fetchval(
                    f"select jsonb_agg(to_jsonb(t) order by to_jsonb(t)::text)::text"
                    f"  from jobs_internal.{row['relname']} t"
                )
                for row in names
            }
            grants = await connection.fetch(
                "select p.oid::regprocedure::text, proacl::text, pg_get_userbyid(proowner)"
                "  from pg_proc p join pg_namespace n on n.oid = pronamespace"
                " where nspname in ('jobs', 'jobs_internal') order by 1"
            )
            return {**tables, "grants": grants, "roles": await self.role_rows()}
        finally:
            await connection.close()

    async def role_rows(self) -> list[Any]:
        return await self.fetch(
            "select rolname, rolcanlogin, rolpassword is not null from pg_authid"
            " where rolname like $1 order by 1",
            self.roles.prefix + "%",
        )


@dataclass
class Agent:
    client: AgentClient
    keyring: Keyring
    app: Any
    http: httpx.AsyncClient
    databases: ControlDatabases
    transport: "MeasuredTransport"

    async def install(self, account: Account, command_id: UUID | None = None) -> SchemaInstalled:
        return await self.run(account, account.install(self.keyring), command_id)

    async def run(self, account: Account, command: Any, command_id: UUID | None = None) -> Any:
        from nodeagent.command_table import SPECS
        from nodeagent.protocol import Class

        role = "administrator" if SPECS[type(command)].cls is Class.ADMINISTER else "agent"
        login = account.login(self.keyring, role)
        return await self.client.run(account.uid, command_id or uuid4(), command, login)


@contextlib.asynccontextmanager
async def agent_beside(
    settings: Settings,
    db: Database,
    *,
    expected_schema: ExpectedSchema | None = None,
    connector: Connector | None = None,
) -> AsyncIterator[Agent]:
    clock, keyring = Clock(), Keyring(settings.keys)
    connector = connector or Connector(settings)
    databases = ControlDatabases(connector, settings, clock)
    app = build(Services(databases, connector, keyring, expected_schema or ExpectedSchema()), clock)
    await Registration(db, settings, URL, clock).beat()
    transport = MeasuredTransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport) as http:
        agent = AgentClient(settings, db, keyring, http=http)
        yield Agent(agent, keyring, app, http, databases, transport)
    await databases.close()


class MeasuredTransport(httpx.ASGITransport):
    """The agent runs in this thread: `cpu` is its part, in seconds, while one request runs at a time."""

    cpu = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        began = time.thread_time()
        try:
            return await super().handle_async_request(request)
        finally:
            self.cpu += time.thread_time() - began


async def a_control_database(
    targets: Postgres,
    administrator: Role | None = None,
    *,
    like: str = "template0",
    prefix: str = "control",
) -> Account:
    owner = administrator or targets.administrator
    name = f"{prefix}_{secrets.token_hex(5)}"
    connection = await asyncpg.connect(targets.url("postgres", owner))
    try:
        await connection.execute(f'create database "{name}" template "{like}"')
    finally:
        await connection.close()
    return Account(targets, name, owner)


_INSTALLED: dict[int, Account] = {}  # by the port of the server


async def installed(settings: Settings, db: Database, targets: Postgres) -> Account:
    """A control database of its own; the schema is installed once per server and copied."""
    first = _INSTALLED.get(targets.port)
    if first is None:
        first = await a_control_database(targets, prefix="kept")  # no sweep takes it
        async with agent_beside(settings, db) as agent:
            await agent.install(first)
        _INSTALLED[targets.port] = first
    copy = await a_control_database(targets, like=first.database)
    return dataclasses.replace(first, database=copy.database)
