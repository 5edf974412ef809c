"""Rules that need the state of the world: what must stand above a resource, and in which state."""

from dataclasses import dataclass

from muster.core.db import Connection
from muster.core.errors import Conflict, Fault, NotFound, PreconditionFailed
from muster.core.ids import ResourceId
from workflows.model.account import ACCOUNT
from workflows.model.resource import GROUP, LOCK, SUBSCRIPTION, Call, Resource
from workflows.store import resources as store

WRITABLE = "Registered"


@dataclass(frozen=True)
class World:
    """What stands above a resource, each part present."""

    subscription: Resource | None = None
    group: Resource | None = None
    parent: store.Stored | None = None  # a resource inside the group, such as a database's server
    locks: tuple[Resource, ...] = ()  # those that hold at the resource


async def parents(tx: Connection, id: ResourceId, tenant_id: str) -> World:
    """The ancestors of `id`; NotFound names the topmost one that is missing."""
    above = [a for a in id.ancestors() if a.pairs and a != id]
    rows = await store.by_keys(tx, [id.key, "/", *(a.key for a in above)], tenant_id)
    for ancestor in reversed(above):
        if ancestor.key not in rows:
            raise await _absent(tx, ancestor, id, tenant_id)
    by_type = {row.resource.type: row for row in rows.values()}
    locks = tuple(row.resource for row in rows.values() if row.resource.type == LOCK)
    nearest = rows.get(id.parent.key)
    inside = nearest and nearest.resource.type not in {SUBSCRIPTION, GROUP}
    subscription, group = by_type.get(SUBSCRIPTION), by_type.get(GROUP)
    return World(
        subscription=subscription.resource if subscription else None,
        group=group.resource if group else None,
        parent=nearest if inside else None,
        locks=locks,
    )


async def _absent(
    tx: Connection, ancestor: ResourceId, wanted: ResourceId, tenant_id: str
) -> NotFound:
    """At job accounts and below, the codes that Azure documents there; ARM's own elsewhere."""
    if not f"{wanted.type}/".startswith(f"{ACCOUNT}/"):
        return missing(ancestor, wanted=wanted)
    name, subscription = ancestor.name, (wanted.subscription or "").lower()
    match ancestor.type:
        case "Microsoft.Sql/servers" if await store.has_server(tx, subscription, name, tenant_id):
            return NotFound(
                f"The server '{name}' is not in the resource group '{wanted.resource_group}'.",
                code="ServerNotInSubscriptionResourceGroup",
            )
        case "Microsoft.Sql/servers":
            return NotFound(
                f"The subscription '{wanted.subscription}' does not have the server '{name}'.",
                code="SubscriptionDoesNotHaveServer",
            )
        case type if type == ACCOUNT:
            return NotFound(f"The job account '{name}' was not found.", code="JobAgentNotFound")
        case _:
            return missing(ancestor, wanted=wanted)


def missing(
    ancestor: ResourceId, *, wanted: ResourceId, code: str = NotFound.default_code
) -> NotFound:
    match ancestor.type:
        case "Microsoft.Resources/subscriptions":
            return NotFound(
                f"The subscription '{ancestor.name}' could not be found.",
                code="SubscriptionNotFound",
            )
        case "Microsoft.Resources/resourceGroups":
            return NotFound(
                f"Resource group '{ancestor.name}' could not be found.",
                code="ResourceGroupNotFound",
            )
        case type if ancestor == wanted:
            return NotFound(f"The resource '{type}/{ancestor.name}' was not found.", code=code)
        case _:
            return NotFound(
                f"Can not perform the requested operation on nested resource. "
                f"Parent resource '{ancestor.name}' not found.",
                code="ParentResourceNotFound",
            )


def writable(world: World, id: ResourceId) -> None:
    """Refuses a write where what stands above is not open for writes."""
    if world.subscription:
        state = world.subscription.properties.get("state", WRITABLE)
        if state != WRITABLE:
            raise Conflict(
                f"The subscription '{world.subscription.name}' is {state} and can only be read or "
                "emptied. Set its state to Registered first.",
                code="ReadOnlyDisabledSubscription",
            )
        namespace = id.named("providers") or ""
        registered = world.subscription.observed.get("registrations", {})
        if registered.get(namespace.lower(), "Registered") != "Registered":
            raise Conflict(
                f"The subscription is not registered to use namespace '{namespace}'. "
                f"POST /subscriptions/{world.subscription.name}/providers/{namespace}/register does it.",
                code="MissingSubscriptionRegistration",
            )
    if world.group and world.group.provisioning_state == "Deleting":
        raise Conflict(
            f"The resource group '{world.group.name}' is being deleted.",
            code="ResourceGroupBeingDeleted",
        )


def unlocked(world: World, id: ResourceId, *, delete: bool) -> None:
    """Refuses what a lock at the resource or above it forbids."""
    for lock in world.locks:
        if delete or lock.properties["level"] == "ReadOnly":
            verb = "delete" if delete else "write"
            raise Conflict(
                f"The scope '{id}' cannot perform {verb} operation because following scope(s) are "
                f"locked: '{lock.observed['scope']}'. Remove the lock and try again.",
                code="ScopeLocked",
            )


def parent_ready(world: World) -> None:
    """Refuses while the parent is not in a state to have children changed."""
    if world.parent is None:
        return
    parent = world.parent.resource
    match parent.provisioning_state:
        case "Succeeded":
            return
        case "Deleting":
            raise Conflict(f"'{parent.name}' is being deleted.", code="ParentResourceBeingDeleted")
        case "Failed":
            raise Conflict(
                f"'{parent.name}' is in a failed state; PUT it again or delete it first.",
                code="ParentResourceNotReady",
            )
        case state:
            raise Conflict(
                f"'{parent.name}' is not ready ({state}); the same request can be sent again soon.",
                code="ParentResourceNotReady",
                retry_after=2,
            )


def preconditions(call: Call, old: Resource | None) -> None:
    """If-Match and If-None-Match against what is there."""
    if call.if_match is not None and (
        old is None or (call.if_match != "*" and old.etag not in _etags(call.if_match))
    ):
        raise PreconditionFailed(
            "If-Match does not hold: "
            + (f"the current ETag is {old.etag}." if old else "the resource does not exist.")
        )
    unwanted = call.if_none_match
    if unwanted and old and (unwanted == "*" or old.etag in _etags(unwanted)):
        raise PreconditionFailed("If-None-Match does not hold: the resource exists.")


def busy(resource: Resource, code: str = "AnotherOperationInProgress") -> Fault:
    if resource.provisioning_state == "Deleting":
        return Conflict(f"'{resource.name}' is being deleted.")
    return Conflict(
        f"Another operation on '{resource.name}' is in progress ({resource.provisioning_state}). "
        "Wait for it to end, or delete the resource.",
        code=code,
    )


def _etags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}
