"""A plane on a real database, calls by made-up principals, and a runner that works until all rests."""

import asyncio
import hashlib
import itertools

from fsm import store as machines_store
from fsm.context import Services
from fsm.lifecycles import LIFECYCLES
from fsm.runner import Runner
from fsm.store import Q
from muster.core.connect import Connector
from muster.core.db import Database
from muster.core.ids import ResourceId
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.core.wake import Wake
from nodeagent.client import AgentClient
from workflows import groups, servers, subscriptions
from workflows.model.resource import Body, Call, Principal
from workflows.services import Services as WorkflowServices

SUBSCRIPTION = ResourceId.parse("/subscriptions/s1")
GROUP = ResourceId.parse("/subscriptions/s1/resourceGroups/g1")
SERVER = ResourceId.parse("/subscriptions/s1/resourceGroups/g1/providers/Microsoft.Sql/servers/srv")
TENANT_ID = "00000000-0000-0000-0000-000000000001"
OWNER = Principal(id="owner", tenant_id=TENANT_ID, name="owner", owner=True)

numbers = itertools.count()


def make_plane(settings: Settings, db: Database) -> WorkflowServices:
    keyring = Keyring(settings.keys)
    return WorkflowServices(
        settings=settings,
        db=db,
        keyring=keyring,
        wake=Wake(settings, db),
        connector=Connector(settings),
        agent=AgentClient(settings, db, keyring),
    )


def a_call(
    method: str = "PUT", principal: Principal = OWNER, *, body: object = None, **rest
) -> Call:
    digest = hashlib.sha256(repr(body).encode()).digest()
    return Call(
        principal=principal,
        correlation_id=f"c{next(numbers)}",
        request_id=f"r{next(numbers)}",
        method=method,
        body_digest=digest,
        **rest,
    )


def database_id(name: str, server: ResourceId = SERVER) -> ResourceId:
    return server.child(("databases", name))


async def a_group(plane: WorkflowServices) -> None:
    await subscriptions.put(plane, a_call(), SUBSCRIPTION, Body())
    await groups.put(plane, a_call(), GROUP, Body(location="local"))


def registered(postgres, **more) -> Body:
    role = postgres.administrator
    endpoint = {"host": "127.0.0.1", "port": postgres.port, "sslMode": "disable"}
    return Body(
        location="local",
        properties={
            "endpoint": endpoint,
            "administratorLogin": role.name,
            "administratorLoginPassword": role.password,
            **more,
        },
    )


async def a_server(plane: WorkflowServices, postgres, **more) -> None:
    await a_group(plane)
    await servers.put(plane, a_call(), SERVER, registered(postgres, **more))
    await settle(plane)


async def settle(plane: WorkflowServices, *, rounds: int = 2000) -> None:
    """Every machine that has something to do does it; fails when that never ends."""
    services = Services(
        settings=plane.settings,
        db=plane.db,
        keyring=plane.keyring,
        connector=plane.connector,
        lifecycles=LIFECYCLES,
    )
    runner = Runner(services, "test")
    for _ in range(rounds):
        due = await machines_store.due(plane.db, 50)
        for uid in due:
            await runner.turn(uid)
        if not due:
            seconds = await plane.db.fetchval(Q.next_due)
            if seconds is None:
                return
            await asyncio.sleep(min(max(seconds, 0.001), 0.05))
    raise AssertionError("the machines did not come to rest")
