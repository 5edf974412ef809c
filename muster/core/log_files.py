"""Log files of processes that hold them open and append: bounded in size, private, with one older part each."""

import contextlib
import fcntl
import os
import shutil
from pathlib import Path
from typing import BinaryIO

LIMIT = 10 * 1024 * 1024  # bytes


def rotate(log: Path, limit: int = LIMIT) -> None:
    """Emptied, not moved: its process goes on writing to the same file.

    Without room for the older part (a full disk) the log is emptied all the same, which makes room.
    """
    try:
        source = log.open("r+b")
    except FileNotFoundError:
        return
    with source:
        try:
            fcntl.flock(source, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another process rotates it now
        if os.fstat(source.fileno()).st_size > limit:
            _keep(source, log, limit)
            os.ftruncate(source.fileno(), 0)


def _keep(source: BinaryIO, log: Path, limit: int) -> None:
    """The last part of it becomes the older part, or nothing does."""
    draft = log.with_name(f".{log.name}.1")
    try:
        source.seek(-limit, os.SEEK_END)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            draft.replace(older(log))
            shutil.copyfileobj(source, copy)  # what was written meanwhile
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
