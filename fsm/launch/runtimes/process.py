"""Workloads as processes of this machine, each in a session of its own, so that it outlives us.

DIR/workloads/<id>.lock    held by the process itself: the kernel says whether one is alive
DIR/workloads/<id>.start   its start file (protocol.Start), private; its path stands in its argv
DIR/workloads/<id>.pid     pid and start time, so that a reused pid is never mistaken for it
DIR/logs/workloads/<id>.log

The lock is taken before the process is made and handed to it as an open file: whenever we die, either
nothing was created and the lock is free, or it is held until that very process has ended.
"""

import contextlib
import fcntl
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec

from fsm.launch.protocol import Start
from fsm.launch.runtime import Handle, StartFailed
from fsm.launch.runtimes.logs import Logs, ids
from muster.core.clock import Clock
from muster.core.files import make_folder, write_private
from muster.core.process import PROC, Process, boot_id, processes

LOCK_FD = 3  # where the process finds its lock open; it never has to look
FILES = 4096  # open files at once, unless the spec says otherwise
KILLED = timedelta(seconds=5)  # SIGKILL takes that long at most, unless the kernel itself hangs

Program = Callable[[Start, Path, Path], list[str]]


class Record(msgspec.Struct, frozen=True):
    pid: int
    started: int
    boot_id: str


def muster_program(start: Start, folder: Path, start_file: Path) -> list[str]:
    """The data directory is visible in it, and no secret."""
    command = [sys.executable, "-P", "-m", "muster", start.kind, "--data-dir", str(folder)]
    return [*command, "--start-file", str(start_file), *start.spec.arguments]


class ProcessRuntime:
    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        program: Program = muster_program,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self._files = make_folder(self.folder / "workloads")
        self._logs = Logs(make_folder(self.folder / "logs") / "workloads")
        self._environment = dict(environment)
        self._program = program
        self._clock = clock or Clock()
        self._boot = boot_id()
        self._children: dict[UUID, int] = {}  # pids of what we made ourselves and have to reap
        self._codes: dict[UUID, int] = {}

    async def start(self, start: Start) -> Handle:
        lock = os.open(self._path(start.id, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            handle = self.find(start.id)
            if handle is None:
                raise StartFailed(f"Workload {start.id} was just ending.") from None
            return handle
        try:
            return self._spawn(start, lock)
        except OSError as error:
            self.forget(start.id)
            raise StartFailed(f"The process can't be started: {error}.") from error
        finally:
            os.close(lock)

    def find(self, id: UUID) -> Handle | None:
        if not self._held(id):
            return None
        process = self._recorded(id)
        if process is None:
            process = next(iter(self._holders(id)), None)
            if process is not None:
                self._note(id, process)
        return Handle(id, process) if process else None

    def was_started(self, id: UUID) -> bool:
        return self._path(id, "pid").exists()

    async def ended(self, handle: Handle) -> None:
        await _process(handle).ended()

    def exit_code(self, id: UUID) -> int | None:
        """Also takes our child out of the process table."""
        if id in self._children:
            pid, status = os.waitpid(self._children[id], os.WNOHANG)
            if pid:
                self._codes[id] = os.waitstatus_to_exitcode(status)
                del self._children[id]
        return self._codes.get(id)

    async def stop(self, handle: Handle, grace: timedelta, *, now: bool = False) -> None:
        process = _process(handle)
        process.send(signal.SIGINT if now else signal.SIGTERM)
        await process.gone(grace, self._clock)
        # Every holder of the lock belongs to the workload, also children that it left.
        for holder in {process, *self._holders(handle.id)}:
            holder.send(signal.SIGKILL)
            await holder.gone(KILLED, self._clock)

    def forget(self, id: UUID) -> None:
        self.exit_code(id)
        self._codes.pop(id, None)
        for suffix in ("start", "pid", "lock"):
            self._path(id, suffix).unlink(missing_ok=True)

    def known(self) -> set[UUID]:
        return ids(self._files.glob("*.lock"))

    def logs(self, id: UUID, most: int = 65536) -> bytes:
        return self._logs.tail(id, most)

    def logged(self) -> set[UUID]:
        return self._logs.known()

    def tidy(self, drop: Iterable[UUID]) -> None:
        self._logs.tidy(drop)

    def _spawn(self, start: Start, lock: int) -> Handle:
        start_file = self._path(start.id, "start")
        write_private(start_file, msgspec.json.encode(start).decode())
        command = self._program(start, self.folder, start_file)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            command[0],
            command,
            self._environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(self._logs.path(start.id)), append, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, lock, LOCK_FD),
            ],
            setsid=True,
            setsigmask=(),
            # Who was started in the background of a script ignores the first, and would hand that on.
            setsigdef=(signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ),
        )
        self._children[start.id] = pid
        process = Process.find(pid) or Process(pid, 0)
        with contextlib.suppress(OSError):  # it runs: without the note it is found by its lock
            self._note(start.id, process)
        _limit(pid, start)
        return Handle(start.id, process)

    def _held(self, id: UUID) -> bool:
        try:
            lock = os.open(self._path(id, "lock"), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        finally:
            os.close(lock)

    def _holders(self, id: UUID) -> list[Process]:
        """Processes that have the lock open; the one that carries the start file's path comes first."""
        lock, mark = str(self._path(id, "lock")), str(self._path(id, "start"))
        holders = [each for each in processes() if each.pid != os.getpid() and _opened(each, lock)]
        return sorted(holders, key=lambda each: (mark not in each.argv, each.started))

    def _recorded(self, id: UUID) -> Process | None:
        record = self._record(id)
        if record is None or record.boot_id != self._boot:
            return None
        process = Process(record.pid, record.started)
        return process if process.alive else None

    def _record(self, id: UUID) -> Record | None:
        try:
            return msgspec.json.decode(self._path(id, "pid").read_bytes(), type=Record)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _note(self, id: UUID, process: Process) -> None:
        record = Record(process.pid, process.started, self._boot)
        write_private(self._path(id, "pid"), msgspec.json.encode(record).decode())

    def _path(self, id: UUID, suffix: str) -> Path:
        return self._files / f"{id}.{suffix}"


def _process(handle: Handle) -> Process:
    assert isinstance(handle.mark, Process)
    return handle.mark


def _limit(pid: int, start: Start) -> None:
    """No core that could hold a secret, and no more than the spec allows."""
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_NOFILE: start.spec.files or FILES}
    if start.spec.memory:
        limits[resource.RLIMIT_AS] = start.spec.memory
    for what, wanted in limits.items():
        with contextlib.suppress(ProcessLookupError):
            _, hard = resource.prlimit(pid, what)
            most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(pid, what, (most, most))


def _opened(process: Process, path: str) -> bool:
    with contextlib.suppress(OSError):
        for link in (PROC / str(process.pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if link.readlink() == Path(path):
                    return True
    return False
