"""The interface between a launcher and what runs processes, small enough for a cluster's API."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from fsm.launch.protocol import Start
from muster.core.errors import Unavailable


class StartFailed(Unavailable):
    """The process could not be made; nothing of it is left."""

    default_code = "StartFailed"


@dataclass(frozen=True)
class Handle:
    """One running process of one workload; what `mark` means is the runtime's business."""

    id: UUID
    mark: object


class Runtime(Protocol):
    """By the id of the workload: there is never more than one process for it."""

    async def start(self, start: Start) -> Handle:
        """The one that runs already, or a new one. StartFailed: nothing runs."""

    def find(self, id: UUID) -> Handle | None:
        """The running process of this workload, whichever launcher started it; None: none runs."""

    def was_started(self, id: UUID) -> bool:
        """A process of it is known to have been made, be it over by now or not."""

    async def ended(self, handle: Handle) -> None:
        """Returns when the process has ended."""

    def exit_code(self, id: UUID) -> int | None:
        """Of a process that has ended; None if it can't be known."""

    async def stop(self, handle: Handle, grace: timedelta, *, now: bool = False) -> None:
        """Asks it to hand over (SIGTERM), or to stop `now` (SIGINT), and ends it after `grace`.

        Returns when it has ended. No other process ever gets the signal.
        """

    def forget(self, id: UUID) -> None:
        """Its secrets and records go; its log stays."""

    def known(self) -> set[UUID]:
        """Every workload of which something is left here, beside its log."""

    def logs(self, id: UUID, most: int = 65536) -> bytes:
        """The end of what it printed."""

    def logged(self) -> set[UUID]:
        """Every workload that has a log."""

    def tidy(self, drop: Iterable[UUID]) -> None:
        """Logs that grew too long are cut, those of `drop` removed."""
