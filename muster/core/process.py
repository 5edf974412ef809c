"""A process named by pid and start time, so that a reused pid is never mistaken for it."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from muster.core.clock import Clock

PROC = Path("/proc")
LOOK = timedelta(milliseconds=20)


@dataclass(frozen=True)
class Process:
    pid: int
    started: int  # clock ticks after boot

    @classmethod
    def find(cls, pid: int) -> "Process | None":
        """None when there is none, or only a zombie."""
        fields = _stat(pid)
        return cls(pid, int(fields[19])) if fields and fields[0] not in "ZX" else None

    @property
    def alive(self) -> bool:
        return self.find(self.pid) == self

    @property
    def program(self) -> str:
        """Empty when it is gone."""
        with contextlib.suppress(OSError):
            return (PROC / str(self.pid) / "comm").read_text().strip()
        return ""

    def works_in(self, folder: Path) -> bool:
        """Its current directory is `folder`; False when we may not see that."""
        try:
            return (PROC / str(self.pid) / "cwd").samefile(folder)
        except OSError:
            return False

    def send(self, number: signal.Signals) -> None:
        """Reaches this very process or none."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            if self.alive:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)

    @property
    def argv(self) -> list[str]:
        """Empty when it is gone."""
        with contextlib.suppress(OSError):
            return (
                (PROC / str(self.pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            )
        return []

    async def ended(self) -> None:
        """Returns when the process has ended, be it our child or not; costs nothing meanwhile."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        over = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, over.set)
        try:
            if self.alive:
                await over.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    async def gone(self, within: timedelta, clock: Clock) -> bool:
        """True as soon as it has ended, False when it still runs after `within`."""
        deadline = clock.monotonic() + within.total_seconds()
        while self.alive:
            if clock.monotonic() > deadline:
                return False
            await clock.sleep(LOOK)
        return True


def processes() -> Iterator[Process]:
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (process := Process.find(int(entry.name))):
            yield process


def boot_id() -> str:
    """Differs after each boot: start times of an older one mean nothing."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def is_zombie(pid: int) -> bool:
    """It has ended, and its parent has not taken notice."""
    return _stat(pid)[:1] == ["Z"]


def zombies(parent: int) -> Iterator[int]:
    """Zombie children of `parent`."""
    for entry in PROC.iterdir():
        if entry.name.isdigit() and _stat(int(entry.name))[:2] == ["Z", str(parent)]:
            yield int(entry.name)


def _stat(pid: int) -> list[str]:
    """The fields after the name of the program: state, parent, …; none when there is no process."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
