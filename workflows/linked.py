"""What a body names beside its own resource: references inside the account, servers to reach."""

import difflib
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.core.errors import FieldError, Forbidden
from muster.core.ids import ResourceId
from workflows import authorization
from workflows.access import Q
from workflows.accesscache import Access
from workflows.model.resource import SERVER, Call
from workflows.plane import Plane
from workflows.validation import references

MOST_UNKNOWN = 50  # as many as an answer shows; each costs a search for its nearest names
USE_AS_TARGET = "Microsoft.Sql/servers/useAsTarget/action"


class Reference(msgspec.Struct, frozen=True):
    """An id in a body that must name something of the same account."""

    where: str
    text: str
    kind: str  # credentials or targetGroups


class ServerName(msgspec.Struct, frozen=True):
    where: str
    name: str
    subscription: str | None = None  # None: the account's


def document(text: str | None) -> dict[str, Any] | None:
    """As the control database takes a reference: by name, and as it was given."""
    return {"name": ResourceId.parse(text).name, "asGiven": text} if text else None


def shown(reference: dict[str, Any] | None, kind: str, here: Access) -> str | None:
    """Exactly as it was given; what psql named has its canonical id."""
    if reference is None:
        return None
    given: str | None = reference.get("asGiven")
    return given or here.id.child((kind, reference["name"])).text


async def check(
    plane: Plane,
    call: Call,
    account: ResourceId,
    named: Iterable[Reference],
    servers: Iterable[ServerName] = (),
) -> list[FieldError]:
    """All that does not fit. What belongs to others is Forbidden, whether or not it exists."""
    errors: list[FieldError] = []
    sound: set[tuple[str, str]] = set()  # thousands of members may name one credential
    for each in named:
        if (each.kind, each.text) in sound:
            continue
        other = references.foreign(each.text, account, each.kind)
        if other is not None:
            await demand(plane, call, f"{other.type}/read", other, account)
        wrong = references.check(each.where, each.text, account, each.kind)
        errors += wrong
        if not wrong:
            sound.add((each.kind, each.text))
    return errors + await _check_servers(plane, call, account, list(servers))


async def demand(
    plane: Plane, call: Call, action: str, linked: ResourceId, scope: ResourceId
) -> None:
    """Forbidden in ARM's words for a right that is missing on something else than the resource."""
    try:
        await authorization.authorize(plane, call, action, linked)
    except Forbidden as denied:
        who = call.principal
        raise Forbidden(
            f"The client '{who.name or who.id}' may write at scope '{scope}'; however, it does not "
            f"have permission to perform action '{action}' on the linked scope '{linked}' or the "
            "linked scope is invalid.",
            code="LinkedAuthorizationFailed",
        ) from denied


async def _check_servers(
    plane: Plane, call: Call, account: ResourceId, servers: list[ServerName]
) -> list[FieldError]:
    if not servers:
        return []
    home, tenant = (account.subscription or "").lower(), call.principal.tenant_id
    inside = {
        each.name
        for each in servers
        if each.subscription is None or each.subscription.lower() == home
    }
    rows = await plane.db.fetch(Q.servers_called, home, tenant, sorted(inside))
    ids = {row["name"]: row["id"] for row in rows}
    for id in sorted({row["id"] for row in rows}):  # a host name may be that of several
        await demand(plane, call, USE_AS_TARGET, ResourceId.parse(id), account)
    errors: list[FieldError] = []
    for each in servers:
        if each.name in ids and each.name in inside:
            continue
        if len(errors) == MOST_UNKNOWN:
            break
        await _demand_elsewhere(plane, call, each, account)
        errors.append(await _unknown(plane, each, home, tenant))
    return errors


async def _demand_elsewhere(
    plane: Plane, call: Call, server: ServerName, account: ResourceId
) -> None:
    """A server outside the account's subscription is refused as such only to those who may use it."""
    tenant = call.principal.tenant_id
    found = await plane.db.fetchval(Q.server_anywhere, server.name.partition(".")[0], tenant)
    if found is not None:
        await demand(plane, call, USE_AS_TARGET, ResourceId.parse(found), account)
    elif server.subscription is not None:
        scope = ResourceId((("subscriptions", server.subscription),))
        await demand(plane, call, f"{SERVER}/read", scope, account)


async def _unknown(plane: Plane, server: ServerName, home: str, tenant: str) -> FieldError:
    names = [row["name"] for row in await plane.db.fetch(Q.server_names, home, tenant)]
    near = difflib.get_close_matches(server.name.lower()[:100], names, n=3, cutoff=0.4)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    message = (
        f"There is no server '{server.name[:100]}' in the subscription of the job account.{hint}"
    )
    return FieldError(server.where, message, "InvalidTargetServer")
