"""Private endpoints of an account: connections to servers that need an approval."""

from typing import Any

from muster.core.errors import FieldError, InvalidRequest, refuse
from muster.core.ids import ResourceId
from nodeagent.items import DecidePrivateEndpoint, PutPrivateEndpoint
from workflows import authorization, items, target_servers
from workflows.access import account_of
from workflows.accesscache import Access
from workflows.items import Family
from workflows.model.item import Item, WrittenItem
from workflows.model.resource import SERVER, Body, Call
from workflows.services import Services
from workflows.store import resources as store
from workflows.validation import common

TARGET = "targetServerAzureResourceId"
WHERE = f"properties.{TARGET}"


def shown(properties: dict[str, Any], _: Access) -> dict[str, Any]:
    document = dict(properties)
    return {TARGET: document.pop("serverId"), **document}


FAMILY = Family("privateEndpoints", shown)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    here = await items.enter(services, call, id)
    target: str = body.properties[TARGET]
    refuse([*common.item_name(id.name), *await _check(services, call, target)])
    command = PutPrivateEndpoint(
        name=id.name, document={"serverId": target}, condition=items.condition(call)
    )
    return await FAMILY.put(services, call, id, here, command)


async def approve(services: Services, call: Call, id: ResourceId) -> Item:
    """Approves; needs the right to use the server as a target."""
    return await _decide(services, call, id, "Approved")


async def reject(services: Services, call: Call, id: ResourceId) -> Item:
    return await _decide(services, call, id, "Rejected")


async def _decide(services: Services, call: Call, id: ResourceId, status: Any) -> Item:
    here = await items.enter(services, call, id)
    resource = await FAMILY.get(services, call, id)
    server = ResourceId.parse(resource.properties[TARGET])
    if not await target_servers.usable(services, call, server, account_of(id)):
        refuse([_unknown(server)])
    verb = "approve" if status == "Approved" else "reject"
    decided = await items.write(
        services,
        call,
        id,
        here,
        FAMILY.action(f"{verb}/action"),
        DecidePrivateEndpoint(name=id.name, status=status, server_id=resource.properties[TARGET]),
    )
    return FAMILY.item(decided, here)


async def _check(services: Services, call: Call, text: str) -> list[FieldError]:
    try:
        server = ResourceId.parse(text)
    except InvalidRequest as wrong:
        return [FieldError(WHERE, wrong.message)]
    if server.type.lower() != SERVER.lower():
        return [FieldError(WHERE, f"Expected the id of a server: …/providers/{SERVER}/…")]
    readable = await authorization.allows(services, call.principal, target_servers.READ, server)
    if not readable or await store.get(services.db, server.key, call.principal.tenant_id) is None:
        return [_unknown(server)]
    return []


def _unknown(server: ResourceId) -> FieldError:
    """The same for a server that is not there and for one that the caller may not read."""
    return FieldError(WHERE, f"There is no server '{server.name}'.", target_servers.CODE)
