"""The process that starts engines, hosts and commands; they keep running when it ends."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from fsm.account_monitor import missing_engines
from fsm.launch.launcher import Launcher
from fsm.launch.monitor import Monitor
from fsm.launch.queue import CHANNEL, OnEnd, Queue
from fsm.launch.queue_client import QueueClient
from fsm.launch.runtimes.process import ProcessRuntime, Program, muster_program
from fsm.launch.workload_runner import WorkloadRunner, workload_url
from fsm.lifecycles import LIFECYCLES
from muster.core import failpoints, telemetry
from muster.core.clock import Clock
from muster.core.db import open_database
from muster.core.files import make_folder, write_private
from muster.core.folder_lock import locked
from muster.core.secrets import Keyring
from muster.core.settings import Settings, SettingsError, surroundings
from muster.core.wake import Wake

Ready = Callable[[dict[str, Any]], None]

INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


async def run(
    settings: Settings,
    stop: asyncio.Event,
    ready: Ready,
    *,
    program: Program = muster_program,
    on_end: OnEnd | None = None,
) -> None:
    """Until `stop`; `ready` is called when workloads are being started."""
    telemetry.setup("launcher", settings)
    failpoints.setup(settings.failpoints)
    folder = settings.launcher_dir or settings.data_dir
    if folder is None:
        raise SettingsError("MUSTER_LAUNCHER_DIR or MUSTER_DATA_DIR is required")
    clock = Clock()
    environment = {
        name: value
        for name, value in surroundings().items()
        if name in INHERITED or f"env:{name}".startswith(settings.credential_references)
    }
    runtime = ProcessRuntime(folder, environment, program=program, clock=clock)
    db = await open_database(settings, application="muster-launcher")
    try:
        async with locked(folder / "workloads", clock):
            queue = Queue(settings, on_end or missing_engines(settings, LIFECYCLES))
            queue_client = QueueClient(
                db=db,
                queue=queue,
                name=settings.launcher_name or socket.gethostname(),
                group=settings.launcher_group,
                home=home(folder),
            )
            workload_runner = WorkloadRunner(
                queue_client=queue_client,
                runtime=runtime,
                settings=settings,
                keyring=Keyring(settings.keys),
                url=workload_url(settings),
            )
            wake = Wake(settings, db)
            launcher = Launcher(
                workload_runner=workload_runner, woken=wake.event(CHANNEL), clock=clock
            )
            async with asyncio.TaskGroup() as group:
                group.create_task(wake.run(stop))
                group.create_task(Monitor(db, queue, clock).run(stop))
                group.create_task(launcher.run(stop, lambda: ready({"name": queue_client.name})))
    finally:
        await db.close()


def home(folder: Path) -> UUID:
    """The identity of a launcher's folder: made once, so that two machines never share a name."""
    path = make_folder(folder / "workloads") / "home"
    if not path.exists():
        write_private(path, str(UUID(bytes=secrets.token_bytes(16), version=4)))
    return UUID(path.read_text(encoding="utf-8").strip())
