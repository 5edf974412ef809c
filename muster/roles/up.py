"""`muster up`: everything on one machine, in the foreground, from one data directory.

After a `kill -9` at any moment, the next `up` on the directory continues from there.
"""

import asyncio
import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from muster.core.clock import Clock
from muster.core.cluster import Cluster, State
from muster.core.errors import Fault
from muster.core.files import make_folder, write_private
from muster.core.log_files import rotate
from muster.core.process import is_zombie, zombies
from muster.core.settings import PREFIX, Settings, SettingsError
from muster.core.version import VERSION
from muster.roles import metadata, restore
from muster.roles.datadir import DataDir, alone
from muster.roles.process import set_limits
from muster.roles.supervisor import Command, Supervisor, role_command

ROLES = ("api", "fsm", "nodeagent", "launcher")
ROLE_PATIENCE = timedelta(seconds=5)
CLUSTER_PATIENCE = timedelta(seconds=2)  # then immediate: all of it ends within 10 s
SWEEP = timedelta(seconds=1)
RENEWAL = 3600.0  # seconds between two looks at the certificate
ONE_ROLE = (
    "one role owns the audit and runs; MUSTER_DATABASE_OWNER_URL would keep the audit from it"
)
SCARCE = 1024 * 1024  # bytes; less than this free means full


@dataclass(frozen=True)
class Options:
    data_dir: Path
    listen: str = "127.0.0.1:8080"
    ready_file: Path | None = None
    tls: bool = False
    allow_target: tuple[str, ...] = ()  # beside those of the environment


def main(
    options: Options, *, roles: tuple[str, ...] = ROLES, command: Command = role_command
) -> int:
    try:
        set_limits()
        asyncio.run(Up(options, roles, command).run())
    except (Fault, SettingsError, OSError) as error:
        print(f"muster up: {_explain(error, options.data_dir)}", file=sys.stderr)
        return 1
    return 0


class Up:
    def __init__(self, options: Options, roles: tuple[str, ...], command: Command) -> None:
        self.options = options
        self.home = DataDir(
            options.data_dir, options.listen, tls=options.tls, allow_target=options.allow_target
        )
        self.root = self.home.root
        self.roles = roles
        self.command = command
        self.clock = Clock()
        self.supervisor: Supervisor | None = None

    async def run(self) -> None:
        """Until SIGINT or SIGTERM, which also end a start that is under way."""
        self.home.make()
        if self.options.ready_file:
            make_folder(self.options.ready_file.absolute().parent, 0o755)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        with alone(self.root / "lock"):
            self._forget_ready_file()
            try:
                await _unless(stop, self._live())
            finally:
                self._forget_ready_file()
                say("Stopping …")
                await self._stop()
                self.home.forget_settings()
                say(f"Stopped. The data stays in {self.root}.")

    async def _live(self) -> None:
        say(f"Muster {VERSION} starts in {self.root}")
        settings = await self.home.settings()
        if self.home.cluster:
            say(f"  metadata database on 127.0.0.1:{self.home.cluster.port}")
        applied = await metadata.bring_up_to_date(settings, self.home.migrator)
        if not self.home.migrator and not settings.database_owner_url:
            say(f"  metadata database: {ONE_ROLE}")
        if applied:
            say(f"  metadata database: {len(applied)} migrations applied")
        if made_at := await restore.take_over(settings, self.root):
            say(f"  restored from a backup of {made_at}: accounts wait to be acknowledged")
        self.supervisor = self._supervise(settings)
        documents = await self.supervisor.start()
        url = str(documents.get("api", {}).get("url", ""))
        self._tell(url, settings)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.supervisor.watch())
            group.create_task(self._look_after())

    def _supervise(self, settings: Settings) -> Supervisor:
        seed = json.dumps([VERSION, sys.executable, sorted(settings.environ().items())])
        record = {
            "listen": settings.listen,
            "version": VERSION,
            "fingerprint": hashlib.sha256(seed.encode()).hexdigest(),
        }
        environment = self.home.environment(settings)
        self.home.keep_settings(environment)
        return Supervisor(
            self.root,
            self.roles,
            environment,
            record=record,
            command=self.command,
            clock=self.clock,
            say=say,
        )

    def _tell(self, url: str, settings: Settings) -> None:
        token = settings.local_token.reveal() if settings.local_token else ""
        if self.options.ready_file:
            document = {
                "url": url,
                "token": token,
                "pid": os.getpid(),
                "database_url": settings.database_url.reveal(),
            }
            write_private(self.options.ready_file, json.dumps(document))
        lines = [f"\nMuster is up at {url}", f"  API     {url}/docs"]
        lines.append(f"  logs    {self.root / 'logs'}")
        if token_file := self.home.given.get(f"{PREFIX}LOCAL_TOKEN_FILE"):
            lines.append(f"  token   {token_file}")
        if self.home.authority:
            lines.append(f"  CA      {self.home.authority.ca}")
        say("\n".join([*lines, "Ctrl-C stops it; the data stays."]))

    async def _look_after(self) -> None:
        """Logs are bounded, the metadata cluster runs, the certificate is fresh, no zombie stays."""
        cluster, renewal = self.home.cluster, self.clock.monotonic() + RENEWAL
        while True:
            await self.clock.sleep(SWEEP)
            self._bound_logs()
            try:
                if cluster and (await cluster.status()).state is State.STOPPED:
                    say("The metadata database ended; it is started again.")
                    await cluster.start()
                if self.clock.monotonic() > renewal:
                    renewal += RENEWAL
                    self.home.renew()
            except (Fault, OSError) as error:
                say(_explain(error, self.root))
            if os.getpid() == 1:
                self._reap()

    def _bound_logs(self) -> None:
        """Also while the cluster can't start: a full disk gets room by it."""
        for log in self.home.log_files():
            with contextlib.suppress(OSError):
                rotate(log)

    def _reap(self) -> None:
        """As the first process of a container we inherit every orphan."""
        children = self.supervisor.children.values() if self.supervisor else ()
        ours = {child.process.pid for child in children}
        for pid in zombies(os.getpid()):
            if pid not in ours and is_zombie(pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    async def _stop(self) -> None:
        """Roles first, since they use the clusters; then every cluster of the directory at once."""
        supervisor = self.supervisor or Supervisor(self.root, self.roles, {}, record={})
        await supervisor.stop(ROLE_PATIENCE)
        folders = self.home.cluster_folders()
        stopped = await asyncio.gather(
            *(
                Cluster(folder, clock=self.clock).stop(patience=CLUSTER_PATIENCE)
                for folder in folders
            ),
            return_exceptions=True,
        )
        for error in stopped:
            if isinstance(error, BaseException):
                say(f"A cluster did not stop: {error}")

    def _forget_ready_file(self) -> None:
        if self.options.ready_file:
            self.options.ready_file.unlink(missing_ok=True)


def say(text: str) -> None:
    """A terminal that went away is no reason to fail."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


async def _unless(stop: asyncio.Event, work: Awaitable[None]) -> None:
    """Runs `work` to its end, its failure, or until `stop`, which cancels it."""
    working = asyncio.ensure_future(work)
    waiting = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working
    finally:
        for task in (working, waiting):
            task.cancel()
        await asyncio.gather(working, waiting, return_exceptions=True)


def _explain(error: Exception, folder: Path) -> str:
    """A full disk shows itself in many ways; the message names the cause."""
    with contextlib.suppress(OSError):
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        if free < SCARCE or getattr(error, "errno", None) == errno.ENOSPC:
            return f"the disk of {folder} is full ({free // 1024} kB free). ({error})"
    context = getattr(error, "context", "")
    return f"{error} [{context}]" if context else str(error)
