"""Resources that hang on any scope: role assignments and locks."""

from typing import Any
from uuid import UUID

from muster.core.db import Connection
from muster.core.ids import ResourceId
from workflows import authorization, resources
from workflows.model.resource import Call, Page, Resource
from workflows.services import Plane
from workflows.store import resources as store
from workflows.store.resources import Content, Q


async def insert(
    tx: Connection, call: Call, id: ResourceId, type: str, content: Content, *, uid: UUID
) -> Resource:
    return await store.insert(
        tx,
        uid=uid,
        id=id,
        type=type,
        parent_key=None,
        tenant_id=call.principal.tenant_id,
        content=content,
        sealed={},
        observed={"scope": id.parent.text},
        state="Succeeded",
        who=call.principal,
    )


async def list_page(
    plane: Plane, call: Call, type: str, scope: ResourceId, after: str | None, top: int
) -> Page:
    """Those that hold at the scope: made there, above it, or below it."""
    if scope.pairs:
        await resources.get(plane, call, scope)
    seen = await authorization.visible(plane, call, f"{type}/read", scope)
    above = [ancestor.key for ancestor in scope.ancestors()]
    rows = await plane.db.fetch(
        Q.list_extensions, call.principal.tenant_id, type, after or "", top + 1, above, scope.key
    )
    more = rows[top - 1]["key"] if len(rows) > top else None
    items = [store.resource(row) for row in rows[:top]]
    if seen is not None:
        items = [item for item in items if _inside(item.properties, seen)]
    return Page(items=items, next=more)


def _inside(properties: dict[str, Any], seen: list[str]) -> bool:
    key = properties["scopeKey"]
    return any(key == scope or key.startswith(scope + "/") for scope in seen)
