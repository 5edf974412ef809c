"""What processes have used, as Linux counts it; one that has ended is forgotten."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def of(pids: Iterable[int]) -> float:
    return sum(_seconds(pid) for pid in pids)


def working_in(folder: Path) -> list[int]:
    """A server's sessions and helpers work in its data directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
    return found


def _seconds(pid: int) -> float:
    """User and system time: fields behind the program's name, which may contain anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
