"""Extension resources at any scope: role assignments and locks."""

from uuid import UUID

from muster.core.db import Connection
from muster.core.ids import ResourceId
from workflows import authorization, resources
from workflows.model.resource import Call, Page, Resource
from workflows.services import Services
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
    services: Services, call: Call, type: str, scope: ResourceId, after: str | None, top: int
) -> Page:
    """Those that hold at the scope, made there, above it, or below it, as far as the caller may GET them."""
    if scope.pairs:
        await resources.get(services, call, scope)
    tenant, above = call.principal.tenant_id, [ancestor.key for ancestor in scope.ancestors()]
    scopes = await authorization.scopes_for(services, call.principal, f"{type}/read")
    rows = await services.db.fetch(
        Q.list_extensions, tenant, type, after or "", top + 1, above, scope.key, scopes
    )
    more = rows[top - 1]["key"] if len(rows) > top else None
    return Page(items=[store.resource(row) for row in rows[:top]], next=more)
