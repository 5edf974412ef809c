"""The use cases that all resource types share: get, list, put, patch, delete; each one transaction."""

import hmac
from typing import Any
from uuid import UUID, uuid4

from fsm import machines, operations
from fsm.operations import Operation
from muster.core.db import Connection, Row
from muster.core.errors import NotFound, refuse
from muster.core.failpoints import reach
from muster.core.ids import ResourceId
from workflows import admission, authorization, drafts, idempotency
from workflows.model.resource import (
    DROP_SCHEMA,
    FORCED_TYPES,
    LOCK,
    Ancestor,
    Body,
    Call,
    Deleted,
    Page,
    Resource,
    Written,
)
from workflows.resource_kind import Draft, Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Q, Stored
from workflows.validation import common


async def get(
    services: Services, call: Call, id: ResourceId, *, absent: str = NotFound.default_code
) -> Resource:
    resource = await store.get(services.db, id.key, call.principal.tenant_id)
    if resource is None:
        async with services.db.connection() as connection:
            await admission.parents(connection, id, call.principal.tenant_id)
        raise admission.missing(id, wanted=id, code=absent)
    return resource.resource


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int, arm_type: str
) -> Page:
    """Rows of a type below a scope, as far as the caller may see them, in a stable order."""
    seen = await authorization.visible(services, call, f"{arm_type}/read", scope)
    if not scope.pairs:
        query, owner = Q.list_tenant, call.principal.tenant_id
    elif scope.resource_group is None and arm_type != "Microsoft.Resources/resourceGroups":
        query, owner = Q.list_subscription, (scope.subscription or "").lower()
    else:
        query, owner = Q.list_children, scope.key
    rows = await services.db.fetch(query, owner, arm_type, after or "", top + 1, seen)
    if not rows and scope.pairs:
        await get(services, call, scope)  # an empty list of something that is not there is 404
    more = rows[top - 1]["key"] if len(rows) > top else None
    return Page(items=[_listed(row, seen) for row in rows[:top]], next=more)


def _listed(row: Row, seen: list[str] | None) -> Resource | Ancestor:
    if authorization.sees(seen, row["key"]):
        return store.resource(row)
    return Ancestor(id=row["id"], name=row["name"], type=row["type"])


async def put(services: Services, call: Call, id: ResourceId, body: Body, kind: Kind) -> Written:
    return await _write(services, call, id, body, kind, patch=False)


async def patch(services: Services, call: Call, id: ResourceId, body: Body, kind: Kind) -> Written:
    return await _write(services, call, id, body, kind, patch=True)


async def _write(
    services: Services, call: Call, id: ResourceId, body: Body, kind: Kind, *, patch: bool
) -> Written:
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Written):
            return earlier
        world = await admission.parents(tx, id, call.principal.tenant_id)
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        if patch and old is None:
            raise admission.missing(id, wanted=id, code=kind.absent)
        admission.preconditions(call, store.plain(old))
        admission.writable(world, id)
        admission.unlocked(world, id, delete=False)
        draft = (
            drafts.patched(id, body, old, kind)
            if patch and old
            else drafts.replaced(id, body, old, kind)
        )
        previous = store.plain(old)
        draft = drafts.filled(draft, kind, world, previous)
        refuse(
            [
                *common.resource(draft, previous, services.settings),
                *kind.validate(draft, previous, services.settings),
            ]
        )
        for action in kind.needs(draft, previous):
            await authorization.authorize(services, call, action, id)
        await kind.admit(tx, call, draft, previous, world)
        written = await _save(
            services, tx, call, draft, old, kind, verb="patch" if patch else "put"
        )
        operation = written.operation.operation_id if written.operation else None
        await audit.accepted(tx, call, kind.action("write"), id, operation_id=operation)
        await idempotency.keep(tx, call, id, written)
        await reach("api.before_commit", kind.arm_type)
    await reach("api.after_commit", kind.arm_type)
    return written


async def delete(services: Services, call: Call, id: ResourceId, kind: Kind) -> Deleted:
    """Always accepted: it interrupts a running operation, and a second one joins the first."""
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Deleted):
            return earlier
        world = await admission.parents(tx, id, call.principal.tenant_id)
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        if old is None:
            return Deleted(existed=False)
        admission.preconditions(call, old.resource)
        if kind.arm_type != LOCK:
            admission.unlocked(world, id, delete=True)
        await kind.leave(tx, call, old.resource)
        if kind.lifecycle is None:
            await store.delete(tx, id.key, call.principal.tenant_id)
            gone = Deleted(existed=True)
        else:
            gone = Deleted(existed=True, operation=await begin_delete(tx, call, old.resource))
        operation = gone.operation.operation_id if gone.operation else None
        await audit.accepted(tx, call, kind.action("delete"), id, operation_id=operation)
        await idempotency.keep(tx, call, id, gone)
    return gone


async def begin_delete(tx: Connection, call: Call, resource: Resource) -> Operation:
    """Ends running operations as Canceled, begins the deletion and signals the machine; once."""
    running = await operations.running(tx, resource.uid)
    if running and running.verb == "delete":
        return running
    await machines.interrupt(tx, uid=resource.uid)
    operation = await _begin(tx, call, resource, "delete")
    await machines.signal(
        tx,
        uid=resource.uid,
        name="delete",
        operation_id=operation.operation_id,
        payload={
            "force": FORCED_TYPES in call.query,
            "dropSchema": call.flag(DROP_SCHEMA),
        },
    )
    return operation


async def _save(
    services: Services,
    tx: Connection,
    call: Call,
    draft: Draft,
    old: Stored | None,
    kind: Kind,
    *,
    verb: str,
) -> Written:
    if old is None:
        return await _create(services, tx, call, draft, kind)
    if old.resource.provisioning_state == "Deleting":
        raise admission.busy(old.resource)
    running = await operations.running(tx, old.resource.uid) if kind.lifecycle else None
    if running:
        raise admission.busy(old.resource, kind.busy)
    kept = {path: sealed for path, sealed in old.sealed.items() if path in draft.kept}
    sealed = kept | _seal(services, old.resource.uid, _changed(services, draft, old))
    if _same(draft, old, sealed):
        return Written(resource=old.resource)
    return await _change(tx, call, draft, old, sealed, kind, verb=verb)


async def _create(
    services: Services, tx: Connection, call: Call, draft: Draft, kind: Kind
) -> Written:
    uid, birth = uuid4(), kind.birth()
    resource = await store.insert(
        tx,
        uid=uid,
        id=draft.id,
        type=kind.arm_type,
        parent_key=parent_key(draft.id),
        tenant_id=call.principal.tenant_id,
        content=draft.content,
        sealed=_seal(services, uid, draft.secrets | birth.secrets),
        observed=kind.observed(services.clock.now()),
        state="Creating" if kind.lifecycle else "Succeeded",
        who=call.principal,
    )
    await kind.created(tx, call, resource)
    if kind.lifecycle is None:
        return Written(resource=resource, created=True)
    operation = await _begin(tx, call, resource, "put")
    await machines.create(
        tx,
        uid=uid,
        lifecycle=kind.lifecycle,
        resource_id=draft.id,
        operation_id=operation.operation_id,
        scratch=birth.scratch,
    )
    return Written(resource=await _now(tx, resource), created=True, operation=operation)


async def _change(
    tx: Connection,
    call: Call,
    draft: Draft,
    old: Stored,
    sealed: dict[str, str],
    kind: Kind,
    *,
    verb: str,
) -> Written:
    resource = await store.update(
        tx,
        old.resource,
        id=draft.id,
        content=draft.content,
        sealed=sealed,
        observed={},
        state="Updating" if kind.lifecycle else "Succeeded",
        who=call.principal,
    )
    if kind.lifecycle is None:
        return Written(resource=resource)
    operation = await _begin(tx, call, resource, verb)
    await machines.signal(
        tx,
        uid=resource.uid,
        name="update",
        operation_id=operation.operation_id,
        payload={"previous": previous(old)},
    )
    return Written(resource=await _now(tx, resource), operation=operation)


async def _now(tx: Connection, resource: Resource) -> Resource:
    """As it stands after its machine has shown where it is."""
    current = await store.get(tx, resource.resource_id.key, resource.tenant_id)
    assert current is not None
    return current.resource


def previous(old: Stored) -> dict[str, Any]:
    """What the machine restores when an update fails."""
    was = old.resource
    return {
        "tags": was.tags,
        "sku": was.sku,
        "identity": was.identity,
        "kind": was.kind,
        "properties": was.properties,
        "sealed": old.sealed,
    }


def parent_key(id: ResourceId) -> str | None:
    return id.parent.key if id.parent.pairs else None


async def _begin(tx: Connection, call: Call, resource: Resource, verb: str) -> Operation:
    return await operations.begin(
        tx,
        resource_id=resource.resource_id,
        resource_uid=resource.uid,
        tenant_id=resource.tenant_id,
        location=resource.location or "local",
        verb=verb,
        caller=call.principal.name or call.principal.id,
        correlation_id=call.correlation_id,
    )


def _changed(services: Services, draft: Draft, old: Stored) -> dict[str, str]:
    """The secrets that differ from the stored ones."""

    def same(path: str, plain: str) -> bool:
        if path not in draft.kept:
            return False
        kept = services.keyring.open(old.sealed[path], f"{old.resource.uid}/{path}").reveal()
        return hmac.compare_digest(kept.encode(), plain.encode())

    return {path: plain for path, plain in draft.secrets.items() if not same(path, plain)}


def _seal(services: Services, uid: UUID, secrets: dict[str, str]) -> dict[str, str]:
    return {path: services.keyring.seal(plain, f"{uid}/{path}") for path, plain in secrets.items()}


def _same(draft: Draft, old: Stored, sealed: dict[str, str]) -> bool:
    was = old.resource
    now = draft.content
    return (
        was.provisioning_state == "Succeeded"
        and sealed == old.sealed
        and draft.id.text == was.id
        and (now.location, now.tags, now.sku, now.identity, now.kind, now.properties)
        == (was.location, was.tags, was.sku, was.identity, was.kind, was.properties)
    )
