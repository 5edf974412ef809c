"""Logs of workloads: one private file each, bounded in size, removed with its workload."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from muster.core.files import make_folder
from muster.core.log_files import LIMIT, older, rotate


class Logs:
    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder = make_folder(folder)
        self._limit = limit

    def path(self, id: UUID) -> Path:
        return self._folder / f"{id}.log"

    def tail(self, id: UUID, most: int) -> bytes:
        with contextlib.suppress(FileNotFoundError), self.path(id).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most)
        return b""

    def known(self) -> set[UUID]:
        return ids(self._folder.glob("*.log"))

    def tidy(self, drop: Iterable[UUID]) -> None:
        for id in drop:
            self.path(id).unlink(missing_ok=True)
            older(self.path(id)).unlink(missing_ok=True)
        for log in self._folder.glob("*.log"):
            with contextlib.suppress(OSError):
                rotate(log, self._limit)


def ids(paths: Iterable[Path]) -> set[UUID]:
    """Files named by the id of a workload; others are not ours."""
    names = set()
    for path in paths:
        with contextlib.suppress(ValueError):
            names.add(UUID(path.stem))
    return names
