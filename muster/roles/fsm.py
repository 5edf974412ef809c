"""The process that moves machines and serves the Workload API: as many as wanted side by side."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import Callable
from typing import Any

from fsm import audit, commands, rekey
from fsm.account_monitor import Watch, missing_engines
from fsm.addresses import KnownAddresses
from fsm.clusters import EmbeddedClusters
from fsm.context import Services
from fsm.dispatcher import Dispatcher
from fsm.housekeeping import Housekeeping
from fsm.launch.queue import Queue
from fsm.lifecycles import LIFECYCLES
from fsm.runner import Runner
from muster.core import failpoints, telemetry
from muster.core.connect import Connector
from muster.core.db import open_database
from muster.core.secrets import Keyring
from muster.core.settings import Settings
from muster.core.wake import Wake
from muster.roles import internal
from muster.roles.key_check import check_keys
from nodeagent.client import AgentClient

Ready = Callable[[dict[str, Any]], None]

CLUSTERS = "clusters"  # folder of the embedded servers below the data directory
CLUSTERS_LIMIT = (
    30.0  # seconds that the ready state waits for embedded clusters to accept connections
)


async def run(settings: Settings, stop: asyncio.Event, ready: Ready) -> None:
    """Until `stop`; `ready` is called when machines are being moved and embedded clusters answer."""
    telemetry.setup("fsm", settings)
    failpoints.setup(settings.failpoints)
    db = await open_database(settings, application="muster-fsm")
    keyring = Keyring(settings.keys)
    agent = AgentClient(settings, db, keyring)
    try:
        await check_keys(db, keyring)
        wake = Wake(settings, db)
        folder = settings.data_dir / CLUSTERS if settings.data_dir else None
        queue = Queue(settings, missing_engines(settings, LIFECYCLES))
        services = Services(
            settings=settings,
            db=db,
            keyring=keyring,
            connector=Connector(settings, KnownAddresses(db)),
            lifecycles=LIFECYCLES,
            clusters=EmbeddedClusters(folder, settings) if folder else None,
            agent=agent,
            queue=queue,
        )
        name = f"{socket.gethostname()}/{os.getpid()}/{secrets.token_hex(4)}"
        dispatcher = Dispatcher(Runner(services, name), wake)
        async with asyncio.TaskGroup() as group:
            group.create_task(wake.run(stop))
            housekeeping = Housekeeping(services)
            group.create_task(_cancel_at(group.create_task(housekeeping.run(stop)), stop))
            group.create_task(dispatcher.run(stop))
            group.create_task(rekey.run(services, stop))
            group.create_task(commands.run(services, stop))
            group.create_task(audit.run(services, stop))
            group.create_task(Watch(services, wake.event("directory")).run(stop))
            group.create_task(internal.serve(settings, db, queue, stop))
            with contextlib.suppress(
                TimeoutError
            ):  # a cluster that can't start must not stop the rest
                async with asyncio.timeout(CLUSTERS_LIMIT):
                    await housekeeping.first_pass.wait()
            ready({})
    finally:
        await agent.close()
        await db.close()


async def _cancel_at(housekeeping: asyncio.Task[None], stop: asyncio.Event) -> None:
    """A cluster that takes long to start must not delay the end; the next process continues with it."""
    await stop.wait()
    housekeeping.cancel()
