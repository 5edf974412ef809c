"""CPU time of processes, as Linux counts it; a process that has ended is left out."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

Used = dict[int, float]  # seconds by process


def of(pids: Iterable[int]) -> Used:
    return {pid: seconds for pid in pids if (seconds := _seconds(pid)) is not None}


def between(before: Used, after: Used) -> float:
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def working_in(folder: Path) -> list[int]:
    """The processes of a PostgreSQL server: their working directory is its data directory."""
    pids = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink() == folder:
                pids.append(int(entry.name))
    return pids


def _seconds(pid: int) -> float | None:
    """User and system time: fields after the program's name, which may contain anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
