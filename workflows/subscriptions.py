"""Subscriptions: PUT with `{}` is enough."""

from uuid import uuid4

from muster.core.db import Connection
from muster.core.errors import Conflict, refuse
from muster.core.ids import TENANT, ResourceId
from workflows import admission, groups, idempotency, resources
from workflows.model.resource import SUBSCRIPTION, Body, Call, Page, Resource, Written
from workflows.model.tenancy import SubscriptionProperties
from workflows.resource_kind import Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Content
from workflows.validation import common

KIND = Kind(arm_type=SUBSCRIPTION, properties=SubscriptionProperties)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> Written:
    refuse([*common.name(id.type, id.name), *common.tags(body.tags or {})])
    properties = {name: value for name, value in body.properties.items() if value is not None}
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Written):
            return earlier
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        admission.preconditions(call, store.plain(old))
        state = properties.get("state", "Registered")
        if old and old.resource.properties["state"] == "Deleted" and state != "Deleted":
            raise Conflict(f"The subscription '{id.name}' was deleted and can't be created again.")
        if state == "Deleted" and old and old.resource.properties["state"] != "Deleted":
            world = await admission.parents(tx, id, call.principal.tenant_id)
            admission.unlocked(world, id, delete=True)
            await groups.refuse_blocked(tx, call, old.resource)
        content = Content(
            tags=body.tags or {},
            properties={"displayName": properties.get("displayName", id.name), "state": state},
        )
        written = await _save(tx, call, id, old, content)
        if state == "Deleted":
            await groups.delete_all(tx, call, id)
        await audit.accepted(tx, call, KIND.action("write"), id)
        await idempotency.keep(tx, call, id, written)
    services.roles.forget()
    return written


async def get(services: Services, call: Call, id: ResourceId) -> Resource:
    return await resources.get(services, call, id)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    del scope
    return await resources.list_page(services, call, TENANT, after, top, SUBSCRIPTION)


async def _save(
    tx: Connection, call: Call, id: ResourceId, old: store.Stored | None, content: Content
) -> Written:
    if old is None:
        made = await store.insert(
            tx,
            uid=uuid4(),
            id=id,
            type=SUBSCRIPTION,
            parent_key=None,
            tenant_id=call.principal.tenant_id,
            content=content,
            sealed={},
            observed={},
            state="Succeeded",
            who=call.principal,
        )
        return Written(resource=made, created=True)
    if content.properties == old.resource.properties and content.tags == old.resource.tags:
        return Written(resource=old.resource)
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
    return Written(resource=changed)
