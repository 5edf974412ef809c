"""Log files of processes that hold them open and append: bounded in size, private, with one older part each."""

import os
import shutil
from pathlib import Path

LIMIT = 10 * 1024 * 1024  # bytes


def rotate(log: Path, limit: int = LIMIT) -> None:
    """Emptied, not moved: its process goes on writing to the same file."""
    try:
        if log.stat().st_size <= limit:
            return
    except FileNotFoundError:
        return
    draft = log.with_name(f".{log.name}.1")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with log.open("rb") as source, os.fdopen(descriptor, "wb") as copy:
        shutil.copyfileobj(source, copy)
        copy.flush()
        draft.replace(older(log))
        shutil.copyfileobj(source, copy)  # what was written meanwhile
    os.truncate(log, 0)


def older(log: Path) -> Path:
    return log.with_name(f"{log.name}.1")
