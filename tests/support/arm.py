"""The whole application in one process, without sockets, on a real database; and how to call it.

async with arm.application(settings) as app: ...      the ASGI app on its plane
async with arm.client(settings) as call: ...          an httpx client that is the local owner
async with arm.server(settings) as client: ...        the same over real uvicorn on a free port
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx

from api.app import build
from muster.core.connect import Connector
from muster.core.db import open_database
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from muster.core.wake import Wake
from nodeagent.client import AgentClient
from workflows.services import Services as WorkflowServices

SQL = "2025-01-01"
TOKEN = "local-token-of-the-tests"
SUBSCRIPTION = "/subscriptions/s1"
GROUP = f"{SUBSCRIPTION}/resourceGroups/g1"
SERVER = f"{GROUP}/providers/Microsoft.Sql/servers/eu1"
HOST = "muster.test"


def local(settings: Settings) -> Settings:
    return replace(settings, local_token=Secret(TOKEN))


@contextlib.asynccontextmanager
async def plane(settings: Settings) -> AsyncIterator[WorkflowServices]:
    db = await open_database(settings, application="muster-test")
    keyring = Keyring(settings.keys)
    agent = AgentClient(settings, db, keyring)
    try:
        yield WorkflowServices(
            settings=settings,
            db=db,
            keyring=keyring,
            wake=Wake(settings, db),
            connector=Connector(settings),
            agent=agent,
        )
    finally:
        await agent.close()
        await db.close()


@contextlib.asynccontextmanager
async def application(settings: Settings, **others: Any) -> AsyncIterator[Any]:
    async with plane(settings) as made:
        yield build(made, **others)


def calling(app: Any, token: str | None = TOKEN, **named: Any) -> httpx.AsyncClient:
    """A client of an ASGI app; without a token it is a stranger."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(
        transport=transport, base_url=f"http://{HOST}", headers=headers, **named
    )


@contextlib.asynccontextmanager
async def client(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async with application(local(settings)) as app, calling(app) as made:
        yield made


@contextlib.asynccontextmanager
async def server(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    """The real composition root on a port of its own."""
    from muster.roles import api

    settings = replace(local(settings), listen="127.0.0.1:0")
    stop, told = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(api.run(settings, stop, told.set_result))
    try:
        await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=told.result()["url"], headers=headers) as made:
            yield made
    finally:
        stop.set()
        await running


async def fill(call: httpx.AsyncClient) -> None:
    """A subscription, a group, and a server that nobody is making yet."""
    await put(call, SUBSCRIPTION, {})
    await put(call, GROUP, {"location": "local"})
    login = {"administratorLogin": "boss", "administratorLoginPassword": "a-good-password-1"}
    endpoint = {"host": "127.0.0.1", "port": 5432, "sslMode": "disable"}
    body = {"location": "local", "properties": {**login, "endpoint": endpoint}}
    await put(call, SERVER, body)


async def put(call: httpx.AsyncClient, path: str, body: Any, version: str = SQL) -> httpx.Response:
    answer = await call.put(path, params={"api-version": version}, json=body)
    assert answer.status_code in {200, 201}, (answer.status_code, answer.text)
    return answer


def error(answer: httpx.Response) -> str:
    """The code of an ARM error; every error has the form."""
    body = answer.json()
    assert set(body) == {"error"}, body
    assert body["error"]["message"]
    assert (
        body["error"]["additionalInfo"][0]["info"]["requestId"] == answer.headers["x-ms-request-id"]
    )
    code: str = body["error"]["code"]
    return code
