"""Changes in an account through REST, by Muster itself and through psql, as its control database recorded them."""

from typing import Any

import msgspec

from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from nodeagent.items import ListItems
from workflows import access
from workflows.model.resource import Call, Page
from workflows.services import Services

DOOR = "door"
DOORS = ("rest", "fsm", "psql")


async def list_page(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """Newest first."""
    filters: dict[str, Any] = {}
    if (door := call.query.get(DOOR)) is not None:
        if door.lower() not in DOORS:
            refuse([FieldError(DOOR, f"Expected one of {', '.join(DOORS)}.")])
        filters[DOOR] = door.lower()
    cursor = msgspec.json.decode(after) if after else None
    command = ListItems(kind="activityLog", path=(), after=cursor, top=top, filters=filters)
    page = await access.look(services, call, id, command)
    items = [{"id": each.name, **each.properties} for each in page.items]
    return Page(
        items=items, next=None if page.next is None else msgspec.json.encode(page.next).decode()
    )
