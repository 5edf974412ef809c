"""Keeps one process per role: starts or adopts it, replaces it when it dies or hangs, ends it.

A child has a session of its own (a terminal's ^C reaches only us) and outlives a `kill -9` of the
supervisor. The next one finds it by the path of its ready file in its argv, which no other process
has, and by a record of pid, start time and fingerprint (everything the child was started with).
Same fingerprint: adopted. Any other: ended, then started again. So there is never a second one.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from muster.core.clock import Clock
from muster.core.errors import Unavailable
from muster.core.files import make_folder, write_private
from muster.core.log_files import rotate
from muster.core.process import Process, boot_id, processes

START_LIMIT = timedelta(seconds=60)
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds; doubled after each death
HEALTHY = 60.0  # a child that lived so long starts again after the first pause
LOOK = timedelta(milliseconds=50)
LIVENESS_CHECK = timedelta(seconds=1)
SILENCE_LIMIT = (
    30.0  # seconds without a heartbeat (the ready file's time of modification) mean hung
)

Command = Callable[[str, Path], list[str]]


def role_command(role: str, ready_file: Path) -> list[str]:
    return [sys.executable, "-P", "-m", "muster", role, "--ready-file", str(ready_file)]


@dataclass
class Child:
    role: str
    process: Process
    popen: "subprocess.Popen[bytes] | None" = None  # None: adopted, not our child
    born: float = 0.0

    def exit_code(self) -> str:
        """Also takes it out of the process table."""
        return "unknown" if self.popen is None else str(self.popen.poll())


class Supervisor:
    def __init__(
        self,
        folder: Path,
        roles: tuple[str, ...],
        environment: Mapping[str, str],
        *,
        record: Mapping[str, str],
        command: Command = role_command,
        clock: Clock | None = None,
        say: Callable[[str], None] = print,
        silence_limit: float = SILENCE_LIMIT,
    ) -> None:
        self.run_folder = make_folder(folder / "run")
        self.log_folder = make_folder(folder / "logs")
        self.roles = roles
        self.environment = dict(environment)
        self.record = dict(record)  # listen, version, fingerprint
        self.command = command
        self.clock = clock or Clock()
        self.say = say
        self.silence_limit = silence_limit
        self.children: dict[str, Child] = {}

    async def start(self) -> dict[str, dict[str, Any]]:
        """What each role reported when it was ready. A role that dies before that fails the start."""
        documents = await asyncio.gather(*(self._begin(role) for role in self.roles))
        return dict(zip(self.roles, documents, strict=True))

    async def watch(self) -> None:
        """For ever."""
        async with asyncio.TaskGroup() as group:
            for role in self.roles:
                group.create_task(self._keep(role))

    async def stop(self, patience: timedelta) -> None:
        """Ends all: TERM, then KILL after the grace period."""
        ending = [child.process for child in self.children.values()]
        ending += [process for role in self.roles for process in self._found(role)]
        await self._end(ending, patience)
        for child in self.children.values():
            child.exit_code()
        for role in self.roles:
            self.ready_file(role).unlink(missing_ok=True)
            self.record_file(role).unlink(missing_ok=True)

    def ready_file(self, role: str) -> Path:
        return self.run_folder / f"{role}.ready"

    def record_file(self, role: str) -> Path:
        return self.run_folder / f"{role}.json"

    async def _begin(self, role: str) -> dict[str, Any]:
        record = recorded(self.record_file(role))
        document = self._told(role)
        if document is not None and record.get("fingerprint") == self.record["fingerprint"]:
            process = Process(record["pid"], record["start_ticks"])
            self.children[role] = Child(role, process, born=self.clock.monotonic())
            strangers = [other for other in self._found(role) if other != process]
            await self._end(strangers, timedelta(seconds=5))
            self.say(f"  {role} runs already (pid {process.pid})")
            return document
        return await self._launch(role)

    async def _launch(self, role: str) -> dict[str, Any]:
        await self._end(self._found(role), timedelta(seconds=5))
        self.ready_file(role).unlink(missing_ok=True)
        log = self.log_folder / f"{role}.log"
        with _append(log) as output:
            at = output.tell()
            popen = subprocess.Popen(  # noqa: S603, ASYNC220 - our own program; it must outlive us
                self.command(role, self.ready_file(role)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        process = Process.find(popen.pid) or Process(popen.pid, 0)
        child = Child(role, process, popen, self.clock.monotonic())
        self.children[role] = child
        what = {"pid": process.pid, "start_ticks": process.started, "boot_id": boot_id()}
        write_private(self.record_file(role), json.dumps(what | self.record))
        deadline = self.clock.monotonic() + START_LIMIT.total_seconds()
        while (document := self._told(role)) is None:
            if not process.alive or self.clock.monotonic() > deadline:
                await self._end([process], timedelta(seconds=1))
                why = _tail(log, at) or f"exit code {child.exit_code()}"
                raise Unavailable(f"The role {role} did not start: {why}")
            await self.clock.sleep(LOOK)
        return document

    async def _keep(self, role: str) -> None:
        pause = FIRST_PAUSE
        while True:
            child = self.children[role]
            await self._ended_or_hung(child)
            if self.clock.monotonic() - child.born > HEALTHY:
                pause = FIRST_PAUSE
            self.say(f"{role} ended ({child.exit_code()}); it starts again in {pause:g} s")
            await self.clock.sleep(timedelta(seconds=pause))
            pause = min(pause * 2, LONGEST_PAUSE)
            try:
                await self._launch(role)
                self.say(f"{role} is up again")
            except (Unavailable, OSError) as error:
                self.say(str(error))

    async def _ended_or_hung(self, child: Child) -> None:
        """Returns when the process has ended; a hung one is ended here."""
        ended = asyncio.ensure_future(child.process.ended())
        hung = asyncio.ensure_future(self._hung(child.role))
        try:
            await asyncio.wait({ended, hung}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            hung.cancel()
        if child.process.alive:
            self.say(f"{child.role} has not responded for {self.silence_limit:g} s; it is replaced")
            await self._end([child.process], timedelta(seconds=2))

    async def _hung(self, role: str) -> None:
        """Returns after a silence by our own clock: a suspended machine, or a supervisor that was stopped
        itself, does not count against the role.
        """
        beat, silent, looked = -1, 0.0, self.clock.monotonic()
        while silent <= self.silence_limit:
            await self.clock.sleep(LIVENESS_CHECK)
            now = self.clock.monotonic()
            gap, looked = now - looked, now
            newest = self._heartbeat(role)
            counts = newest == beat and gap < self.silence_limit / 2
            silent, beat = (silent + gap if counts else 0.0), newest

    def _heartbeat(self, role: str) -> int:
        try:
            return self.ready_file(role).stat().st_mtime_ns
        except OSError:
            return 0

    async def _end(self, ending: list[Process], patience: timedelta) -> None:
        for number, limit in (
            (signal.SIGTERM, patience),
            (signal.SIGKILL, timedelta(seconds=1)),
        ):
            for process in ending:
                process.send(number)
            await asyncio.gather(*(process.gone(limit, self.clock) for process in ending))
            ending = [process for process in ending if process.alive]

    def _found(self, role: str) -> list[Process]:
        mark = str(self.ready_file(role))
        return [
            process
            for process in processes()
            if process.pid != os.getpid() and mark in process.argv
        ]

    def _told(self, role: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = json.loads(self.ready_file(role).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return document


def recorded(path: Path) -> dict[str, Any]:
    """What was written about a running role; empty when that process no longer runs."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        process = Process(record["pid"], record["start_ticks"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return record if record.get("boot_id") == boot_id() and process.alive else {}


def _append(log: Path) -> Any:
    """Private, and never without end: `muster up` rotates it while it is written, too."""
    rotate(log)
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def _tail(log: Path, at: int) -> str:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(at)
        lines = file.read()[-20_000:].decode(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:])[-1000:]
    return ""
