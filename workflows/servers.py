"""Servers: registered by their endpoint, or created by Muster in embedded mode."""

from functools import partial
from typing import Any

from fsm import machines, server_contact
from fsm.administrator import login_of
from fsm.store import resource_by_key
from muster.core.db import Connection
from muster.core.errors import Conflict, FieldError, InvalidRequest
from muster.core.ids import ResourceId
from muster.core.settings import Settings
from workflows import delete_guard, resources, server_users, targets
from workflows.admission import World
from workflows.model.resource import SERVER, Call, Deleted, Resource
from workflows.model.server import ServerProperties
from workflows.resource_kind import Draft, Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Q
from workflows.validation import common
from workflows.validation.server import needs, unusable
from workflows.validation.server import server as rules


def validate(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    errors = rules(draft, old, settings)
    if not draft.content.location:
        errors.append(FieldError("location", "A server needs a location.", "LocationRequired"))
    return errors


async def admit(
    tx: Connection, call: Call, draft: Draft, old: Resource | None, world: World
) -> None:
    del call, world
    if old is None and await tx.fetchval(Q.name_taken, draft.id.name):
        raise Conflict(
            f"The server name '{draft.id.name}' is taken; names are unique in this installation.",
            code="NameAlreadyExists",
            target="name",
        )


KIND = Kind(
    arm_type=SERVER,
    properties=ServerProperties,
    lifecycle="server",
    validate=validate,
    admit=admit,
    leave=delete_guard.server,
    unusable=unusable,
    needs=needs,
)

put = partial(resources.put, kind=KIND)
patch = partial(resources.patch, kind=KIND)
get = resources.get
list_page = partial(resources.list_page, arm_type=SERVER)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    """A delete under way is joined; a new one is refused while jobs use the server."""
    server = await store.get(services.db, id.key, call.principal.tenant_id)
    if server and server.resource.provisioning_state != "Deleting":
        await server_users.refuse_used(services, call, server.resource.resource_id)
    return await resources.delete(services, call, id, KIND)


async def discover(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    """The databases that stand on the server now; those that jobs leave out with the reason."""
    del body
    await resources.get(services, call, id)
    server = await resource_by_key(services.db, id.key)
    assert server is not None
    databases = await targets.enumerate_databases(services, server)
    async with services.db.transaction() as tx:
        await audit.accepted(tx, call, KIND.action("discover/action"), id)
    return {"value": databases}


async def check(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """Whether the server answers now; of one without an administrator login GET shows the outcome."""
    await resources.get(services, call, id)
    server = await resource_by_key(services.db, id.key)
    assert server is not None
    failure = await server_contact.contact(services, server)
    async with services.db.transaction() as tx:
        if login_of(server) is None:
            observed = {"conditions": server_contact.conditions(server, failure)}
            await machines.observe(
                tx, uid=server.uid, row_version=server.row_version, observed=observed
            )
        await audit.accepted(tx, call, KIND.action("check/action"), id)
    if failure is None:
        return {"reachable": True}
    return {"reachable": False, "code": failure.code, "message": failure.message}


async def check_name(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    await resources.get(services, call, id.upto("subscriptions"))
    name, type = body["name"], body["type"]
    if type.lower() != SERVER.lower():
        raise InvalidRequest(
            f"'{type[:200]}' has no names to check; expected {SERVER}.",
            code="InvalidParameterValue",
            target="type",
        )
    if wrong := common.name(SERVER, name):
        return {"name": name, "available": False, "reason": "Invalid", "message": wrong[0].message}
    if await services.db.fetchval(Q.name_taken, name):
        message = f"The server name '{name}' is taken."
        return {"name": name, "available": False, "reason": "AlreadyExists", "message": message}
    return {"name": name, "available": True}
