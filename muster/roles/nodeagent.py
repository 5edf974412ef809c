"""The process beside control databases: runs catalogued commands in them."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

from api.server import Certificate, Server, make
from fsm.addresses import KnownAddresses
from muster.core import failpoints, telemetry
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.db import open_database
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.roles.api import address, listen
from muster.roles.key_check import check_keys
from nodeagent.control_db import ControlDatabases
from nodeagent.invocation import Services
from nodeagent.registry import Registration
from nodeagent.server import build

Ready = Callable[[dict[str, Any]], None]


async def run(settings: Settings, stop: asyncio.Event, ready: Ready) -> None:
    """Until `stop`; `ready` gets the address once commands are answered and routed here."""
    telemetry.setup("nodeagent", settings)
    failpoints.setup(settings.failpoints)
    clock = Clock()
    with contextlib.closing(listen(settings.node_agent_listen)) as listener:
        db = await open_database(settings, application="muster-nodeagent")
        try:
            keyring = Keyring(settings.keys)
            await check_keys(db, keyring)
            connector = Connector(settings, KnownAddresses(db))
            databases = ControlDatabases(connector, settings, clock)
            services = Services(databases, connector, keyring)
            context = mutual_tls(settings)
            ready_document = address(listener, tls=context is not None)
            if settings.node_agent_url:
                ready_document["url"] = settings.node_agent_url
            registration = Registration(db, settings, ready_document["url"], clock)
            server = make(build(services, clock), context)
            try:
                await _serve(
                    server, listener, registration, databases, stop, lambda: ready(ready_document)
                )
            finally:
                await databases.close()
        finally:
            await db.close()


def mutual_tls(settings: Settings) -> ssl.SSLContext | None:
    """Only who shows a certificate of our own authority is talked to."""
    chain, key = settings.node_agent_tls_cert, settings.node_agent_tls_key
    authority = settings.node_agent_tls_ca
    if not (chain and key and authority):
        return None
    context = Certificate(chain, key).context
    context.load_verify_locations(authority)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _serve(
    server: Server,
    listener: socket.socket,
    registration: Registration,
    databases: ControlDatabases,
    stop: asyncio.Event,
    ready: Callable[[], None],
) -> None:
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server.serve(sockets=[listener]))
        group.create_task(_ask_to_end(server, stop))
        group.create_task(databases.run(stop))
        await server.up.wait()
        await registration.beat()
        group.create_task(registration.run(stop))
        ready()
        await serving
        stop.set()


async def _ask_to_end(server: Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True
