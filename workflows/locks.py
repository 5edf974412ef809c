"""Locks at any scope: CanNotDelete and ReadOnly, inherited downwards."""

from uuid import uuid4

from muster.core.errors import refuse
from muster.core.ids import ResourceId
from workflows import admission, extensions, idempotency, resources
from workflows.model.resource import LOCK, Body, Call, Deleted, Page, Resource, Written
from workflows.model.tenancy import LockProperties
from workflows.resource_kind import Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Content
from workflows.validation import common

KIND = Kind(arm_type=LOCK, properties=LockProperties)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> Written:
    refuse(common.name(LOCK, id.name))
    properties = {name: value for name, value in body.properties.items() if value is not None}
    content = Content(properties=properties | {"scopeKey": id.parent.key})
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Written):
            return earlier
        await admission.parents(tx, id, call.principal.tenant_id)
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        admission.preconditions(call, store.plain(old))
        if old is None:
            made = await extensions.insert(tx, call, id, LOCK, content, uid=uuid4())
            written = Written(resource=made, created=True)
        else:
            changed = await store.update(
                tx,
                old.resource,
                id=id,
                content=content,
                sealed={},
                observed={},
                state="Succeeded",
                who=call.principal,
            )
            written = Written(resource=changed)
        await audit.accepted(tx, call, KIND.action("write"), id)
        await idempotency.keep(tx, call, id, written)
    return written


async def get(services: Services, call: Call, id: ResourceId) -> Resource:
    return await resources.get(services, call, id)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    return await extensions.list_page(services, call, LOCK, scope, after, top)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    return await resources.delete(services, call, id, KIND)
