"""A PostgreSQL cluster of ours: every operation may be repeated after a crash at any instruction.

    cluster = Cluster(Path("…/clusters/<id>"), major=None, max_connections=200)
    await cluster.create()          # initdb under another name, then one rename; nothing if it is there
    port = await cluster.start()    # adopts its own running postmaster; never starts a second one
    await cluster.status()          # Status(state, pid, port); state: absent, stopped, starting, running
    await cluster.stop()            # fast, then immediate; also ends backends whose postmaster died
    await cluster.destroy()         # stop and remove; nothing if it is gone
    cluster.port                    # recorded before the first start, kept over restarts
    cluster.superuser_url("db")     # a Secret; for bootstrap only, never for customers

The folder holds `data` (owned by who runs PostgreSQL, 0700), `log`, `port` and `superuser` (the
password). SCRAM only, TCP on 127.0.0.1 only, fsync on. Two processes may call anything at the same
time: a lock on the folder orders them, and dies with its holder. Refusals are Faults; the ones that
can pass (no space, port taken, still recovering) are Unavailable.
"""

import asyncio
import os
import random
import secrets
import shutil
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import IO

from muster.core.binaries import Binaries
from muster.core.clock import Clock
from muster.core.errors import Unavailable
from muster.core.files import make_folder, sync_folder, write_private
from muster.core.folder_lock import locked
from muster.core.log_files import rotate
from muster.core.privileges import Account, make_runnable, run_as
from muster.core.process import Process, is_zombie, processes
from muster.core.settings import Secret

HOST = "127.0.0.1"
SUPERUSER = "postgres"
PORTS = range(20_000, 32_768)  # below the ephemeral range, so that no outgoing connection takes one
PAUSE = timedelta(milliseconds=100)
PATIENCE = timedelta(
    seconds=5
)  # orphans of a killed postmaster, a zombie not yet reaped, a busy port

CONFIGURATION = """\
# Written by Muster before each start. What shall stay belongs into ALTER SYSTEM.
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
port = {port}
max_connections = {max_connections}
shared_buffers = 32MB
max_wal_size = 256MB
password_encryption = 'scram-sha-256'
huge_pages = off
logging_collector = off
log_line_prefix = '%m [%p] %q%u@%d '
log_timezone = 'UTC'
timezone = 'UTC'
"""
ACCESS = """\
# Written by Muster before each start.
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
host replication {superuser} 127.0.0.1/32 scram-sha-256
"""


class State(StrEnum):
    ABSENT = "absent"
    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"


@dataclass(frozen=True)
class Status:
    state: State
    pid: int | None = None
    port: int | None = None


class Cluster:
    def __init__(
        self,
        directory: Path,
        *,
        major: int | None = None,
        max_connections: int = 200,
        clock: Clock | None = None,
    ) -> None:
        self.directory = directory.absolute()
        self.data = self.directory / "data"
        self.log = self.directory / "log"
        self.major = major
        self.max_connections = max_connections
        self.clock = clock or Clock()
        self.account = Account.current()

    @property
    def port(self) -> int | None:
        try:
            return int((self.directory / "port").read_text(encoding="ascii"))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return None

    def superuser_url(self, database: str = "postgres") -> Secret:
        password = (self.directory / "superuser").read_text(encoding="ascii")
        return Secret(
            f"postgresql://{SUPERUSER}:{password}@{HOST}:{self.port}/{database}?sslmode=disable"
        )

    async def create(self) -> None:
        make_folder(self.directory, 0o700 if self.account.is_us else 0o711)
        async with locked(self.directory, self.clock):
            if self._made():
                self.binaries()
                return
            await asyncio.to_thread(self._sweep)
            await self._initialise()

    async def start(self, *, within: timedelta = timedelta(seconds=60)) -> int:
        """The port on which it answers. Starts, adopts, or waits for a start under way."""
        async with locked(self.directory, self.clock):
            deadline = self.clock.monotonic() + within.total_seconds()
            give_up = self.clock.monotonic() + PATIENCE.total_seconds()
            while True:
                status = self._status()
                match status.state:
                    case State.RUNNING if status.port:
                        return status.port
                    case State.ABSENT:
                        raise Unavailable(f"There is no cluster in {self.directory}.")
                    case State.STOPPED if not self._lingers() or self.clock.monotonic() > give_up:
                        failure = await self._launch(deadline - self.clock.monotonic())
                        late = self.clock.monotonic() > give_up
                        # A postmaster that lives on was only slow: it has the full time.
                        if failure and late and self._status().state is State.STOPPED:
                            raise failure
                if self.clock.monotonic() > deadline:
                    raise Unavailable(f"The cluster in {self.directory} is still starting.")
                await self.clock.sleep(PAUSE)

    async def stop(self, *, patience: timedelta = PATIENCE) -> None:
        if self.directory.is_dir():
            async with locked(self.directory, self.clock):
                await self._halt(patience)

    async def status(self) -> Status:
        return self._status()

    async def destroy(self) -> None:
        """The folder disappears by one rename, so a crash never leaves half a cluster."""
        if self.directory.is_dir():
            async with locked(self.directory, self.clock):
                await self._halt(timedelta(seconds=1))
                name = f".{self.directory.name}.gone-{secrets.token_hex(4)}"
                self.directory.rename(self.directory.with_name(name))
                sync_folder(self.directory.parent)
        for rest in self.directory.parent.glob(f".{self.directory.name}.gone-*"):
            await asyncio.to_thread(shutil.rmtree, rest, ignore_errors=True)

    # What is there

    def _made(self) -> bool:
        return (self.data / "PG_VERSION").is_file()

    def binaries(self) -> Binaries:
        """A cluster keeps the programs of its PG_VERSION for life."""
        major = self.major
        if self._made():
            major = int((self.data / "PG_VERSION").read_text(encoding="ascii"))
        return Binaries.find(major)

    def _status(self) -> Status:
        if not self._made():
            return Status(State.ABSENT)
        pid, port, ready = self._pid_file()
        postmaster = Process.find(pid) if pid else None
        if postmaster is None or not self._is_ours(postmaster):
            return Status(State.STOPPED, port=self.port)
        return Status(State.RUNNING if ready else State.STARTING, postmaster.pid, port)

    def _pid_file(self) -> tuple[int | None, int | None, bool]:
        """Lines: pid, data directory, start time, port, socket folder, address, shm key, status."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return None, None, False
        lines += [""] * (8 - len(lines))
        pid, port = (int(text) if text.strip().isdigit() else None for text in (lines[0], lines[3]))
        return pid, port, lines[7].strip() == "ready"

    def _lingers(self) -> bool:
        """A killed postmaster that was not reaped yet: PostgreSQL takes it for a live one."""
        pid, _, _ = self._pid_file()
        return pid is not None and is_zombie(pid)

    def _is_ours(self, process: Process) -> bool:
        return process.program == "postgres" and process.works_in(self.data)

    # What is done

    def _sweep(self) -> None:
        for half in self.directory.glob("data.*"):
            shutil.rmtree(half, ignore_errors=True)

    async def _initialise(self) -> None:
        """A name of its own: an initdb that outlived its caller can't spoil this one."""
        binaries = self.binaries()
        draft = self.directory / f"data.{secrets.token_hex(4)}"
        draft.mkdir(mode=0o700)
        self._give(draft)
        password = secrets.token_urlsafe(32)
        locale = ["--locale=C.UTF-8"]
        if binaries.major >= 17:
            locale.append("--locale-provider=builtin")
        options = ["--encoding=UTF8", *locale, "--data-checksums", "--no-instructions"]
        users = [f"--username={SUPERUSER}", "--pwfile=/dev/stdin", "--auth=scram-sha-256"]
        try:
            argv = [str(binaries.initdb), f"--pgdata={draft}", *options, *users]
            code, output = await self._run(binaries, argv, given=password)
            if code != 0:
                raise _failed("initdb could not create the cluster", output)
            write_private(self.directory / "superuser", password)
            draft.rename(self.data)
            sync_folder(self.directory)
        finally:
            await asyncio.to_thread(shutil.rmtree, draft, ignore_errors=True)

    async def _launch(self, seconds: float) -> Unavailable | None:
        """One try; pg_ctl leaves a postmaster in a session of its own that survives us."""
        await self._end_orphans()
        port = self._choose_port()
        self._configure(port)
        binaries = self.binaries()
        argv = [str(binaries.pg_ctl), "start", "--silent", "--wait", f"--pgdata={self.data}"]
        with self._open_log() as log:
            at = log.tell()
            code, _ = await self._run(binaries, [*argv, f"--timeout={max(1, int(seconds))}"], log)
        return _failed("PostgreSQL could not start", self._written_since(at)) if code else None

    def _open_log(self) -> IO[bytes]:
        rotate(self.log)
        return os.fdopen(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")

    def _written_since(self, at: int) -> str:
        with self.log.open("rb") as log:
            log.seek(at)
            return log.read().decode(errors="replace")

    async def _halt(self, patience: timedelta) -> None:
        pid, _, _ = self._pid_file()
        postmaster = Process.find(pid) if pid else None
        if postmaster and self._is_ours(postmaster):
            for number, limit in (
                (signal.SIGINT, patience),  # fast: sessions are ended, a checkpoint is written
                (signal.SIGQUIT, timedelta(seconds=2)),  # immediate: recovers at the next start
                (signal.SIGKILL, timedelta(seconds=1)),
            ):
                postmaster.send(number)
                if await postmaster.gone(limit, self.clock):
                    break
        await self._end_orphans()

    async def _end_orphans(self) -> None:
        """Backends without a postmaster keep its shared memory and block the next start."""
        members = [process for process in processes() if self._is_ours(process)]
        for number in (signal.SIGQUIT, signal.SIGKILL):
            for member in members:
                member.send(number)
            for member in members:
                await member.gone(timedelta(seconds=1), self.clock)

    def _choose_port(self) -> int:
        """The recorded one unless a stranger sits there; recorded before anybody can use it."""
        port = self.port
        if port is None or not free(port):
            port = next(filter(free, random.sample(PORTS, 200)), None)
            if port is None:
                raise Unavailable(f"No free port between {PORTS[0]} and {PORTS[-1]}.")
            write_private(self.directory / "port", str(port))
        return port

    def _configure(self, port: int) -> None:
        settings = CONFIGURATION.format(port=port, max_connections=self.max_connections)
        access = ACCESS.format(superuser=SUPERUSER)
        for name, text in (("postgresql.conf", settings), ("pg_hba.conf", access)):
            write_private(self.data / name, text)
            self._give(self.data / name)

    def _give(self, path: Path) -> None:
        if not self.account.is_us:
            os.chown(path, self.account.uid, self.account.gid)

    async def _run(
        self,
        binaries: Binaries,
        argv: Sequence[str],
        log: IO[bytes] | None = None,
        *,
        given: str = "",
    ) -> tuple[int, str]:
        if not self.account.can_run(binaries.postgres):
            make_runnable(binaries.bin)
        paths = (binaries.bin, self.directory)
        return await run_as(self.account, argv, paths, log=log, given=given)


def free(port: int) -> bool:
    """The port is free and can be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _failed(what: str, output: str) -> Unavailable:
    tail = " / ".join(output.strip().splitlines()[-4:])[-1000:]
    if "No space left on device" in output:
        return Unavailable(f"{what}: the disk is full.", code="DiskFull", context=tail)
    return Unavailable(f"{what}: {tail}", code="ClusterNotStarted")
