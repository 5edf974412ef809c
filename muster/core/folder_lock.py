"""A lock on a folder: waits its turn, and the kernel frees it when the holder dies."""

import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from muster.core.clock import Clock
from muster.core.errors import Unavailable

PAUSE = timedelta(milliseconds=100)
LIMIT = timedelta(seconds=60)


@contextlib.asynccontextmanager
async def locked(folder: Path, clock: Clock) -> AsyncIterator[None]:
    """Unavailable when the folder is not there, or is held for too long."""
    deadline = clock.monotonic() + LIMIT.total_seconds()
    while (descriptor := _take(folder)) is None:
        if clock.monotonic() > deadline:
            raise Unavailable(f"Another process uses {folder}.")
        await clock.sleep(PAUSE)
    try:
        yield
    finally:
        os.close(descriptor)


def _take(folder: Path) -> int | None:
    """None when it is held, or when the folder was replaced meanwhile."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise Unavailable(f"There is no cluster in {folder}.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), folder.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None
