"""Files that are whole or absent, and private from their first byte."""

import contextlib
import os
import secrets
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replaces `path` by one rename: readers see the old text or the new one, only the owner can."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_folder(path: Path, mode: int = 0o700) -> Path:
    """With its parents; the umask does not change the mode."""
    if not path.parent.exists():
        make_folder(path.parent, 0o755)
    with contextlib.suppress(FileExistsError):
        path.mkdir()
        path.chmod(mode)
    return path


def sync_folder(path: Path) -> None:
    """Makes a rename inside the folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
