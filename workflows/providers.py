"""Which namespaces a subscription may use: registered from the start, until one is unregistered."""

from typing import Any

from muster.core.errors import NotFound
from muster.core.ids import ResourceId
from workflows import admission, authorization, resources
from workflows.model.resource import Call, Page
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Content

READ = "Microsoft.Resources/providers/read"
NAMESPACES = {
    "microsoft.authorization": "Microsoft.Authorization",
    "microsoft.insights": "Microsoft.Insights",
    "microsoft.resources": "Microsoft.Resources",
    "microsoft.sql": "Microsoft.Sql",
}


async def get(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """`id` is /subscriptions/{s}/providers/{namespace}."""
    subscription = await resources.get(services, call, id.upto("subscriptions"))
    return shown(id, subscription.observed)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    del after, top
    subscription = await resources.get(services, call, scope)
    each = (scope.child(("providers", name)) for name in NAMESPACES.values())
    items = [shown(id, subscription.observed) for id in each]
    if await authorization.visible(services, call, READ, scope) is not None:
        # The state is the subscription's, which the caller may not read.
        items = [{name: item[name] for name in ("id", "namespace")} for item in items]
    return Page(items=items)


async def register(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    return await _set(services, call, id, "Registered", "register/action")


async def unregister(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    return await _set(services, call, id, "Unregistered", "unregister/action")


def shown(id: ResourceId, observed: dict[str, Any]) -> dict[str, Any]:
    namespace = NAMESPACES.get((id.named("providers") or "").lower())
    if namespace is None:
        raise NotFound(
            f"There is no resource provider '{id.named('providers')}'; "
            f"known: {', '.join(NAMESPACES.values())}.",
            code="InvalidResourceNamespace",
        )
    subscription = id.upto("subscriptions").text
    return {
        "id": f"{subscription}/providers/{namespace}",
        "namespace": namespace,
        "registrationState": observed.get("registrations", {}).get(namespace.lower(), "Registered"),
        "registrationPolicy": "RegistrationFree"
        if namespace != "Microsoft.Sql"
        else "RegistrationRequired",
    }


async def _set(
    services: Services, call: Call, id: ResourceId, state: str, action: str
) -> dict[str, Any]:
    subscription = id.upto("subscriptions")
    async with services.db.transaction() as tx:
        old = await store.lock(tx, subscription.key, call.principal.tenant_id)
        if old is None:
            raise admission.missing(subscription, wanted=id)
        shown(id, {})
        was = old.resource
        registrations = dict(was.observed.get("registrations", {}))
        registrations[(id.named("providers") or "").lower()] = state
        changed = await store.update(
            tx,
            was,
            id=was.resource_id,
            content=Content(tags=was.tags, properties=was.properties),
            sealed={},
            observed={"registrations": registrations},
            state=was.provisioning_state,
            who=call.principal,
        )
        await audit.accepted(tx, call, f"{id.named('providers')}/{action}", subscription)
    return shown(id, changed.observed)
