"""The process that answers the public API; stateless, as many as wanted."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any

from api.app import build
from api.server import Certificate, Connections, Server, make
from fsm.addresses import KnownAddresses
from muster.core import failpoints, telemetry
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.db import open_database
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.core.wake import Wake
from muster.roles.key_check import check_keys
from nodeagent.client import AgentClient
from workflows.services import Services

log = telemetry.get(__name__)

BACKLOG = 2048
Ready = Callable[[dict[str, Any]], None]


async def run(settings: Settings, stop: asyncio.Event, ready: Ready) -> None:
    """Until `stop`; `ready` gets the address once requests are answered."""
    telemetry.setup("api", settings)
    failpoints.setup(settings.failpoints)
    listener = listen(settings.listen)
    with contextlib.closing(listener):
        db = await open_database(settings, application="muster-api")
        keyring = Keyring(settings.keys)
        agent = AgentClient(settings, db, keyring)
        try:
            await check_keys(db, keyring)
            services = Services(
                settings=settings,
                db=db,
                keyring=keyring,
                wake=Wake(settings, db),
                connector=Connector(settings, KnownAddresses(db)),
                agent=agent,
            )
            certificate = None
            if settings.tls_cert and settings.tls_key:
                certificate = Certificate(settings.tls_cert, settings.tls_key)
            app = build(services)
            limit = Connections(settings.connections_per_address, settings.forwarded_from)
            server = make(app, certificate.context if certificate else None, limit)
            await _serve(server, services, certificate, listener, stop, ready)
        finally:
            await agent.close()
            await db.close()


async def _serve(
    server: Server,
    services: Services,
    certificate: Certificate | None,
    listener: socket.socket,
    stop: asyncio.Event,
    ready: Ready,
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(services.wake.run(stop))
        if certificate:
            group.create_task(_watch(certificate, services, stop))
        serving = group.create_task(server.serve(sockets=[listener]))
        group.create_task(_ask_to_end(server, stop))
        await server.up.wait()
        ready(address(listener, tls=certificate is not None))
        await serving
        stop.set()


async def _ask_to_end(server: Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


async def _watch(certificate: Certificate, services: Services, stop: asyncio.Event) -> None:
    clock: Clock = services.clock
    while not stop.is_set():
        await clock.sleep_or(stop, services.settings.sweep)
        try:
            if certificate.reload():
                log.info("the listener's certificate was replaced")
        except (OSError, ssl.SSLError) as error:
            log.warning("the new certificate can't be used", why=type(error).__name__)


def listen(where: str) -> socket.socket:
    """Bound at once, so that a port in use stops the process before anything else happens."""
    host, _, port = where.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's delay only for sockets that say they are TCP
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def address(listener: socket.socket, *, tls: bool) -> dict[str, Any]:
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - what it means
    shown = f"[{shown}]" if ":" in shown else shown
    return {"url": f"{'https' if tls else 'http'}://{shown}:{port}", "port": port}
