"""The Workload API and the monitor, for whichever role serves them beside its own work."""

import asyncio
import contextlib
import errno

from api.internal import build
from api.server import Server, make
from api.workloads import Services
from fsm.launch.monitor import Monitor, keep_ticking
from fsm.launch.queue import Queue
from fsm.launch.tokens import LauncherTokens
from muster.core.clock import Clock
from muster.core.db import Database
from muster.core.settings import Settings
from muster.roles.api import listen


async def serve(settings: Settings, db: Database, queue: Queue, stop: asyncio.Event) -> None:
    """Until `stop`. Of several processes on one machine one has the address; the others stand by."""
    clock = Clock()
    services = Services(db=db, queue=queue, tokens=LauncherTokens(settings), clock=clock)
    async with asyncio.TaskGroup() as group:
        group.create_task(Monitor(db, queue, clock).run(stop))
        while not stop.is_set():
            with contextlib.suppress(AddressTaken):
                await _serve(settings, services, stop)
            await clock.sleep_or(stop, settings.sweep)


class AddressTaken(Exception):  # noqa: N818 - another process serves
    pass


async def _serve(settings: Settings, services: Services, stop: asyncio.Event) -> None:
    try:
        listener = listen(settings.internal_listen)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise AddressTaken from None
        raise
    with contextlib.closing(listener):
        server = make(build(services), None)
        async with asyncio.TaskGroup() as group:
            group.create_task(keep_ticking(services.db, services.queue, services.clock, stop))
            serving = group.create_task(server.serve(sockets=[listener]))
            group.create_task(_end(server, stop))
            await serving
            stop.set()


async def _end(server: Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True
