"""Whether this machine has capacity for one more process: free memory and idle cores."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from muster.core.settings import Settings

MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True)
class Room:
    memory: int  # bytes that can be had without swapping
    load: float  # runnable processes per core, over the last minute


def look() -> Room:
    """Of the machine, or of the container where that is smaller."""
    memory = _available()
    with contextlib.suppress(OSError, ValueError):  # "max" is no number, and no limit
        most = int((GROUP / "memory.max").read_text())
        memory = min(memory, most - int((GROUP / "memory.current").read_text()))
    return Room(memory=memory, load=os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def full(room: Room, settings: Settings, starting: int) -> str | None:
    """Why nothing more may start now; None when it may. Those under way have not yet taken theirs."""
    needed = settings.launcher_memory_reserve + settings.launcher_memory * (starting + 1)
    if room.memory < needed:
        return f"{needed} bytes of memory are needed, {room.memory} are free"
    if settings.launcher_max_load and room.load > settings.launcher_max_load:
        return f"the load per core is {room.load:.1f}, above {settings.launcher_max_load:g}"
    return None


def _available() -> int:
    for line in MEMINFO.read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return 0
