"""Memory of processes: PSS, where a page that several processes share counts for each by its part."""

from collections.abc import Iterable
from pathlib import Path

MEGABYTE = 1_000_000


def of(pids: Iterable[int]) -> float:
    """Megabytes of all of them; a process that has ended counts nothing."""
    return sum(_bytes(pid) for pid in pids) / MEGABYTE


def _bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
