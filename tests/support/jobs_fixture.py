"""An account whose control database is real, behind the API and a node agent in this process.

No engine runs: what is started stays Created, so that nothing moves but what a test does.

async with start_jobs_api(settings, targets) as jobs_api:
    await jobs_api.put("jobs/nightly", {"properties": {}})
    await jobs_api.get("jobs/nightly")
"""

import asyncio
import base64
import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from fsm import store as machines
from fsm.context import Services
from fsm.launch.queue import Queue
from fsm.lifecycles import LIFECYCLES
from fsm.runner import Runner
from muster.core.connect import Connector
from muster.core.db import open_database
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.core.wake import Wake
from tests.support import arm
from tests.support.accounts import sweep
from tests.support.control_db import Agent, agent_beside
from tests.support.postgres import Postgres
from workflows.services import Services as WorkflowServices

SERVER = f"{arm.GROUP}/providers/Microsoft.Sql/servers/srv"
ACCOUNT = f"{SERVER}/jobAgents/acc"
SQL = {"api-version": arm.SQL}


@dataclass
class JobsApi:
    plane: WorkflowServices
    services: Services
    app: Any
    call: httpx.AsyncClient
    targets: Postgres
    agent: Agent
    names: list[str] = field(default_factory=list)  # databases of the accounts

    # What a customer does

    async def put(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.call.put(self.url(path), params=SQL, json=body, headers=headers)

    async def patch(self, path: str, properties: Any, **headers: str) -> httpx.Response:
        body = {"properties": properties}
        return await self.call.patch(self.url(path), params=SQL, json=body, headers=headers)

    async def get(self, path: str, **params: str) -> httpx.Response:
        named = {name.replace("__", "$"): value for name, value in params.items()}
        return await self.call.get(self.url(path), params=SQL | named)

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await self.call.post(self.url(path), params=SQL, json=body, headers=headers)

    async def delete(self, path: str, **params: str) -> httpx.Response:
        return await self.call.delete(self.url(path), params=SQL | params)

    async def made(self, path: str, body: Any) -> dict[str, Any]:
        answer = await self.put(path, body)
        assert answer.status_code in {200, 201}, (path, answer.status_code, answer.text)
        shown: dict[str, Any] = answer.json()
        return shown

    async def seen(self, path: str, **params: str) -> dict[str, Any]:
        answer = await self.get(path, **params)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        shown: dict[str, Any] = answer.json()
        return shown

    async def a_job(self, name: str = "nightly") -> None:
        """With a credential, a group and one step."""
        await self.made("credentials/login", {"properties": {"username": "u", "password": "p"}})
        members = [
            {
                "type": "SqlServer",
                "serverName": "srv",
                "refreshCredential": ref("credentials/login"),
            }
        ]
        await self.made("targetGroups/fleet", {"properties": {"members": members}})
        await self.made(f"jobs/{name}", {"properties": {"description": "d"}})
        await self.made(f"jobs/{name}/steps/first", a_step())

    @staticmethod
    def url(path: str) -> str:
        return path if path.startswith("/") else f"{ACCOUNT}/{path}".rstrip("/")

    # What is there

    async def control(self, query: str, *args: Any) -> list[Any]:
        connection = await asyncpg.connect(self.targets.url(self.names[0], self.targets.root))
        try:
            return await connection.fetch(query, *args)
        finally:
            await connection.close()

    async def metadata(self, query: str, *args: Any) -> list[Any]:
        return await self.plane.db.fetch(query, *args)

    async def an_account(self, name: str) -> None:
        """A database and an account on it, as far as it gets without a launcher."""
        database = f"{SERVER}/databases/control_{name}"
        await arm.put(self.call, database, {"location": "local"})
        await self._until(database, "provisioning_state = 'Succeeded'")
        body = {"location": "local", "properties": {"databaseId": database}}
        await arm.put(self.call, f"{SERVER}/jobAgents/{name}", body)
        await self._until(f"{SERVER}/jobAgents/{name}", "m.scratch ? 'installed'")
        self.names.append(f"control_{name}")

    async def private_key(self) -> tuple[str, UUID, UUID]:
        """What only the engine gets, with what secrets are bound to."""
        (row,) = await self.metadata(
            "select r.*, m.scratch from resource r join machine m on m.uid = r.uid where key = $1",
            ACCOUNT.lower(),
        )
        opened = self.plane.keyring.open(row["sealed"]["private_key"], f"{row['uid']}/private_key")
        assert base64.b64decode(opened.reveal())
        return opened.reveal(), row["uid"], UUID(row["scratch"]["identity"])

    async def _until(self, path: str, true: str) -> None:
        runner = Runner(self.services, "test")
        query = (
            f"select 1 from resource r join machine m on m.uid = r.uid where r.key = $1 and {true}"
        )
        for _ in range(400):
            if await self.plane.db.fetchval(query, path.lower()):
                return
            for uid in await machines.due(self.plane.db, 50):
                await runner.turn(uid)
            await asyncio.sleep(0.01)
        raise AssertionError(f"{path} never got there")


def ref(path: str) -> str:
    return f"{ACCOUNT}/{path}"


def a_step(value: str = "select 1", **more: Any) -> dict[str, Any]:
    group = {"targetGroup": ref("targetGroups/fleet"), "credential": ref("credentials/login")}
    return {"properties": {**group, "action": {"value": value}, **more}}


CONTROL = "control_acc"
SET_OID = """
    update machine set scratch = scratch || jsonb_build_object('databaseOid', $1::bigint) where scratch ? 'databaseOid'
"""
SAME_RIGHTS = """
    update pg_database set datacl = (select datacl from pg_database where datname = $2) where datname = $1
"""  # a copy has the rights in a database, not those on it
_prepared: dict[
    tuple[int, Any], str
] = {}  # a name of databases, by the targets' server and the keys


@contextlib.asynccontextmanager
async def start_jobs_api(
    settings: Settings, targets: Postgres, tmp_path: Any
) -> AsyncIterator[JobsApi]:
    """The account is made once by each pytest process; every test gets copies of both its databases."""
    # The agent of the tests registers once.
    settings = replace(arm.local(settings), node_agent_silent=timedelta(hours=1))
    key = (targets.port, settings.keys)
    try:
        if key not in _prepared:
            async with _open(settings, targets) as jobs_api:
                await _prepare(jobs_api)
                await jobs_api.an_account("acc")
            _prepared[key] = await _keep(settings, targets)
        await _copy(_prepared[key], settings, targets)
        async with _open(settings, targets) as jobs_api:
            jobs_api.names.append(CONTROL)
            (row,) = await jobs_api.control(
                "select oid from pg_database where datname = current_database()"
            )
            await jobs_api.metadata(SET_OID, row["oid"])
            yield jobs_api
    finally:
        await sweep(targets, tmp_path)


@contextlib.asynccontextmanager
async def _open(settings: Settings, targets: Postgres) -> AsyncIterator[JobsApi]:
    db = await open_database(settings, application="muster-test")
    try:
        async with agent_beside(settings, db) as beside:
            keyring, connector = Keyring(settings.keys), Connector(settings)
            agent, queue = beside.client, Queue(settings)
            plane = WorkflowServices(settings=settings, db=db, keyring=keyring, wake=Wake(settings, db),
                          connector=connector, agent=agent)  # fmt: skip
            services = Services(settings=settings, db=db, keyring=keyring, connector=connector,
                                lifecycles=LIFECYCLES, agent=agent, queue=queue)  # fmt: skip
            app = arm.build(plane)
            async with arm.calling(app) as call:
                yield JobsApi(plane, services, app, call, targets, beside)
    finally:
        await db.close()


async def _keep(settings: Settings, targets: Postgres) -> str:
    """Both databases get a name that no sweep removes."""
    name = f"kept_{secrets.token_hex(5)}"
    for url, database in _databases(settings, targets):
        await _execute(url, f'alter database "{database}" rename to "{name}"')
    return name


async def _copy(name: str, settings: Settings, targets: Postgres) -> None:
    for url, database in _databases(settings, targets):
        await _execute(url, f'drop database if exists "{database}"')
        await _execute(url, f'create database "{database}" template "{name}"')
    await _execute(targets.url("postgres", targets.root), SAME_RIGHTS, CONTROL, name)


def _databases(settings: Settings, targets: Postgres) -> list[tuple[str, str]]:
    url, _, database = settings.database_url.reveal().rpartition("/")
    return [
        (f"{url}/postgres", database),
        (targets.url("postgres", targets.administrator), CONTROL),
    ]


async def _execute(url: str, statement: str, *args: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement, *args)
    finally:
        await connection.close()


async def _prepare(jobs_api: JobsApi) -> None:
    role = jobs_api.targets.administrator
    await arm.put(jobs_api.call, arm.SUBSCRIPTION, {})
    await arm.put(jobs_api.call, arm.GROUP, {"location": "local"})
    endpoint = {"host": jobs_api.targets.host, "port": jobs_api.targets.port, "sslMode": "disable"}
    login = {"administratorLogin": role.name, "administratorLoginPassword": role.password}
    body = {"location": "local", "properties": {"endpoint": endpoint, **login}}
    await arm.put(jobs_api.call, SERVER, body)
    await jobs_api._until(SERVER, "provisioning_state = 'Succeeded'")
