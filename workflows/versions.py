"""Versions of a job: what its steps were."""

from muster.core.ids import ResourceId
from workflows import items
from workflows.items import Family
from workflows.model.item import Item
from workflows.model.resource import Call, Page
from workflows.plane import Plane

FAMILY = Family("jobs/versions")


async def get(plane: Plane, call: Call, id: ResourceId) -> Item:
    return await items.get(plane, call, id, FAMILY)


async def list_page(
    plane: Plane, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    return await items.list_page(plane, call, scope, after, top, FAMILY)
