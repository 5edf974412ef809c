"""Resource groups: written in one transaction, deleted with their resources by a machine."""

from functools import partial

from fsm import machines, operations
from fsm.operations import Operation
from muster.core.db import Connection
from muster.core.errors import Conflict, FieldError
from muster.core.ids import ResourceId
from muster.core.settings import Settings
from workflows import access, admission, delete_guard, idempotency, resources, server_users
from workflows.model.resource import GROUP, SUBSCRIPTION, Call, Deleted, Resource
from workflows.model.tenancy import GroupProperties
from workflows.resource_kind import Draft, Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Q


def validate(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    del old, settings
    if draft.content.location:
        return []
    return [FieldError("location", "A resource group needs a location.", "LocationRequired")]


KIND = Kind(arm_type=GROUP, properties=GroupProperties, validate=validate)

put = partial(resources.put, kind=KIND)
patch = partial(resources.patch, kind=KIND)
get = resources.get
list_page = partial(resources.list_page, arm_type=GROUP)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    await _refuse_running(services, call, id)
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Deleted):
            return earlier
        world = await admission.parents(tx, id, call.principal.tenant_id)
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        if old is None:
            raise admission.missing(id, wanted=id)
        admission.preconditions(call, old.resource)
        admission.unlocked(world, id, delete=True)
        await refuse_blocked(tx, call, old.resource)
        operation = await begin_delete(tx, call, old.resource)
        gone = Deleted(existed=True, operation=operation)
        await audit.accepted(
            tx, call, KIND.action("delete"), id, operation_id=operation.operation_id
        )
        await idempotency.keep(tx, call, id, gone)
    return gone


async def _refuse_running(services: Services, call: Call, id: ResourceId) -> None:
    """Accounts of other groups may run jobs on servers of this one."""
    scope = (id.subscription or "").lower(), call.principal.tenant_id, id.key
    servers = [row["id"] for row in await services.db.fetch(access.Q.servers_below, *scope)]
    answers = await server_users.ask(services, call, servers, outside=id)
    what = f"servers of the resource group '{id.name}'"
    await server_users.refuse_running(services, call, answers.users, what)


async def refuse_blocked(tx: Connection, call: Call, scope: Resource) -> None:
    """A cascade refuses as a whole, before its first effect, and names all that is in its way."""
    locks = await tx.fetch(Q.locks_inside, scope.resource_id.key)
    if locks:
        noun = "subscription" if scope.type == SUBSCRIPTION else "resource group"
        raise Conflict(
            f"The {noun} '{scope.name}' holds locked resources.",
            code="ScopeLocked",
            details=[
                FieldError(row["observed"]["scope"], f"Locked by '{row['id']}'.", "ScopeLocked")
                for row in locks
            ],
        )
    await delete_guard.server(tx, call, scope)


async def delete_all(tx: Connection, call: Call, subscription: ResourceId) -> None:
    """Begins the deletion of every group of a subscription."""
    for row in await tx.fetch(Q.lock_children, subscription.key, GROUP):
        await begin_delete(tx, call, store.resource(row))


async def begin_delete(tx: Connection, call: Call, group: Resource) -> Operation:
    running = await operations.running(tx, group.uid)
    if running:
        return running
    operation = await operations.begin(
        tx,
        resource_id=group.resource_id,
        resource_uid=group.uid,
        tenant_id=group.tenant_id,
        location=group.location or "local",
        verb="delete",
        caller=call.principal.name or call.principal.id,
        correlation_id=call.correlation_id,
    )
    if await machines.get(tx, group.uid):  # an earlier deletion has failed
        await machines.signal(tx, uid=group.uid, name="delete", operation_id=operation.operation_id)
    else:
        await machines.create(
            tx,
            uid=group.uid,
            lifecycle="resourceGroup",
            resource_id=group.resource_id,
            operation_id=operation.operation_id,
        )
    return operation
