"""The Workload API and the monitor, for whichever role serves them beside its own work."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from api.internal import build
from api.server import Server, make
from api.workloads import Services
from fsm.launch.monitor import Monitor, keep_ticking
from fsm.launch.queue import Queue
from fsm.launch.tokens import LauncherTokens
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.settings import Settings
from muster.roles.api import address, listen

Ready = Callable[[dict[str, Any]], None]


def workload_url(settings: Settings) -> str:
    """How engines and hosts reach the Workload API."""
    return settings.internal_url or f"http://{settings.internal_listen}"


async def serve(
    settings: Settings, db: Database, queue: Queue, stop: asyncio.Event, ready: Ready
) -> None:
    """Until `stop`; `ready` is told the address once requests are answered."""
    clock = Clock()
    services = Services(db=db, queue=queue, tokens=LauncherTokens(settings), clock=clock)
    with contextlib.closing(listen(settings.internal_listen)) as listener:
        server = make(build(services), None)
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_ticking(db, queue, clock, stop))
            group.create_task(Monitor(db, queue, clock).run(stop))
            serving = group.create_task(server.serve(sockets=[listener]))
            group.create_task(_end(server, stop))
            await server.up.wait()
            ready(address(listener, tls=False))
            await serving
            stop.set()


async def _end(server: Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True
