"""Events of an account or of one execution, after a position."""

from dataclasses import dataclass
from typing import Any

from muster.core.ids import ResourceId
from nodeagent.items import ReadExecution
from workflows import access, executions
from workflows.model.resource import Call
from workflows.services import Services

PAGE = 100  # events of one read


@dataclass(frozen=True)
class EventPage:
    items: list[dict[str, Any]]
    position: int  # after these events
    missed: bool  # events after the given position may have been deleted
    ended: bool  # the execution has ended, and these were its last events

    @property
    def full(self) -> bool:
        """There may be more."""
        return len(self.items) == PAGE


async def of_execution(
    services: Services, call: Call, id: ResourceId, after: int | None
) -> EventPage:
    """Without a position from the first event on."""
    return _page(await executions.read(services, call, id, "events", _options(after)))


async def of_account(
    services: Services, call: Call, id: ResourceId, after: int | None
) -> EventPage:
    """Without a position from now on."""
    command = ReadExecution(kind="events", path=(), options=_options(after))
    return _page((await access.look(services, call, id, command)).answer)


def _options(after: int | None) -> dict[str, Any]:
    return {"top": PAGE, "after": None if after is None else {"number": after}}


def _page(document: dict[str, Any]) -> EventPage:
    return EventPage(
        items=document["items"],
        position=document["next"]["number"],
        missed=document["missed"],
        ended=document["ended"],
    )
