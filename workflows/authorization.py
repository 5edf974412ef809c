"""Whether a principal may act: denied unless a role says otherwise, and decided before existence shows."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

from muster.core.errors import FieldError, Forbidden
from muster.core.ids import TENANT, ResourceId
from workflows.model.resource import Call, Principal, PrincipalType
from workflows.rolecache import Grant
from workflows.roles import OWNER, ROLES
from workflows.services import Services
from workflows.store import audit
from workflows.store.resources import Q


async def authorize(services: Services, call: Call, action: str, id: ResourceId) -> None:
    """Raises Forbidden, and audits it, unless a role at the scope or above it allows the action.

    A list is allowed as well when a role stands below its scope; it then shows only that part.
    """
    listing = action.endswith("/read") and action[:-5].lower() != id.type.lower()
    if await _own_tenant(services, call.principal, id):
        scopes = await scopes_for(services, call.principal, action)
        if any(_covers(scope, id.key) for scope in scopes):
            return
        if listing and any(scope.startswith(_below(id.key)) for scope in scopes):
            return
    await audit.denied(services.db, call, action, id)
    who = call.principal
    raise Forbidden(
        f"The client '{who.name or who.id}' with object id '{who.id}' does not have authorization "
        f"to perform action '{action}' over scope '{id}' or the scope is invalid."
    )


async def allows(services: Services, who: Principal, action: str, id: ResourceId) -> bool:
    """Whether a role at the scope or above it allows the action; asks for no list, audits nothing."""
    if not await _own_tenant(services, who, id):
        return False
    return any(_covers(scope, id.key) for scope in await scopes_for(services, who, action))


async def readable(
    services: Services, call: Call, details: Sequence[FieldError]
) -> list[FieldError]:
    """Those details of a refusal whose resource the caller may read; the others are only counted."""
    named = [(each, ResourceId.parse(each.target or "/")) for each in details]
    return [
        each for each, id in named if await allows(services, call.principal, f"{id.type}/read", id)
    ]


async def visible(
    services: Services, call: Call, action: str, scope: ResourceId
) -> list[str] | None:
    """None: the whole scope; else the keys below it that the caller may see."""
    scopes = await scopes_for(services, call.principal, action)
    if any(_covers(s, scope.key) for s in scopes):
        return None
    return [s for s in scopes if s.startswith(_below(scope.key))]


def covered(key: str, scopes: AbstractSet[str]) -> bool:
    """Whether one of these scopes is the key or above it: as many look-ups as the key has segments."""
    if TENANT.key in scopes:
        return True
    while key:
        if key in scopes:
            return True
        key = key.rpartition("/")[0]
    return False


def sees(seen: list[str] | None, key: str) -> bool:
    """Whether one of the keys that `visible` gave holds all of it."""
    return seen is None or any(_covers(scope, key) for scope in seen)


def children(seen: list[str], scope: ResourceId, type: str) -> set[str]:
    """Names, in lower case, of those of a type directly below a scope that hold a visible key."""
    below = _below(scope.key) + type.lower() + "/"
    return {key[len(below) :].partition("/")[0] for key in seen if key.startswith(below)}


async def scopes_for(services: Services, who: Principal, action: str) -> list[str]:
    """Keys of the scopes at which the principal may do it, cut to the scope of its token."""
    return [
        cut
        for grant in await grants_of(services, who)
        if ROLES[grant.role].allows(action) and (cut := _intersect(grant.scope, who.scope))
    ]


async def grants_of(services: Services, who: Principal) -> tuple[Grant, ...]:
    if who.owner or _bootstrap(services, who):
        return (Grant("/", OWNER.id),)
    key = (who.tenant_id, who.id, who.groups)
    age = services.settings.role_cache.total_seconds()
    grants = services.roles.grants(key, age)
    if grants is None:
        rows = await services.db.fetch(Q.roles_of, who.tenant_id, who.id, list(who.groups))
        grants = tuple(Grant(row["scope"], row["role"]) for row in rows if row["role"] in ROLES)
        services.roles.keep_grants(key, grants)
    return grants


async def principal_of_token(services: Services, digest: str) -> Principal | None:
    """The service token with that digest, unless it has expired or was revoked."""
    row = await services.db.fetchrow(Q.token_by_digest, digest)
    if row is None:
        return None
    expires = row["properties"].get("expiresOn")
    if expires and datetime.fromisoformat(expires) <= services.clock.now():
        return None
    return Principal(
        id=str(row["uid"]),
        tenant_id=row["tenant_id"],
        type=PrincipalType.APPLICATION,
        name=row["name"],
        token_id=str(row["uid"]),
        scope=row["properties"].get("scope", "/").lower(),
    )


async def _own_tenant(services: Services, who: Principal, id: ResourceId) -> bool:
    """A subscription that does not exist belongs to no tenant yet: the use case reports that it is missing."""
    if id.subscription is None:
        return True
    subscription = id.subscription.lower()
    tenant = services.roles.tenant(subscription, services.settings.role_cache.total_seconds())
    if tenant is None:
        tenant = await services.db.fetchval(Q.tenant_of_subscription, subscription)
        if tenant is not None:
            services.roles.keep_tenant(subscription, tenant)
    return tenant in {None, who.tenant_id}


def _bootstrap(services: Services, who: Principal) -> bool:
    first = services.settings.bootstrap_owner
    return first is not None and who.id == first and who.tenant_id == services.settings.tenant_id


def _below(key: str) -> str:
    return "/" if key == TENANT.key else key + "/"


def _covers(scope: str, key: str) -> bool:
    return key == scope or key.startswith(_below(scope))


def _intersect(scope: str, limit: str) -> str | None:
    if _covers(limit, scope):
        return scope
    return limit if _covers(scope, limit) else None
