"""Databases of a server."""

from functools import partial

import msgspec

from fsm.administrator import is_embedded
from fsm.store import Resource as Server
from fsm.store import resource_by_key
from muster.core.db import Connection
from muster.core.errors import Conflict, FieldError, refuse
from muster.core.ids import ResourceId
from workflows import admission, authorization, delete_guard, resources, server_users, targets
from workflows.admission import World
from workflows.model.database import DatabaseProperties
from workflows.model.resource import DATABASE, Call, Deleted, Resource
from workflows.resource_kind import Draft, Kind
from workflows.services import Services
from workflows.store import resources as store
from workflows.store.resources import Content
from workflows.validation.database import database as validate


async def admit(
    tx: Connection, call: Call, draft: Draft, old: Resource | None, world: World
) -> None:
    admission.parent_ready(world)
    assert world.parent is not None
    if old is None and not world.parent.resource.properties.get("administratorLogin"):
        raise Conflict(
            f"Server '{world.parent.resource.name}' has no administratorLogin: Muster can't create "
            "databases on it. Databases that exist need no registration to be targets.",
            code="ServerHasNoAdministrator",
        )
    pool = draft.properties.get("elasticPoolId")
    if pool and not await store.get(tx, pool.lower(), call.principal.tenant_id):
        refuse(
            [
                FieldError(
                    "properties.elasticPoolId",
                    f"There is no elastic pool '{pool}'.",
                    "ElasticPoolNotFound",
                )
            ]
        )


def fill(draft: Draft, world: World) -> Content:
    """A database stands where its server stands."""
    server = world.parent
    here = server.resource.location if server else None
    return msgspec.structs.replace(draft.content, location=draft.content.location or here)


KIND = Kind(
    arm_type=DATABASE,
    properties=DatabaseProperties,
    lifecycle="database",
    validate=validate,
    admit=admit,
    fill=fill,
    leave=delete_guard.database,
)

put = partial(resources.put, kind=KIND)
patch = partial(resources.patch, kind=KIND)
get = resources.get
list_page = partial(resources.list_page, arm_type=DATABASE)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    """A registered server's database with data or users in it is dropped only when that is forced."""
    database = await store.get(services.db, id.key, call.principal.tenant_id)
    server = await resource_by_key(services.db, id.parent.key)
    if (
        database
        and server
        and not server_users.drops_in_use(call)
        and _dropped(server, database.resource)
    ):
        await targets.refuse_drop(services, server, id.name)
    try:
        return await resources.delete(services, call, id, KIND)
    except Conflict as refused:
        if not refused.details:
            raise
        details = await authorization.readable(services, call, refused.details)
        raise Conflict(refused.message, code=refused.code, details=details) from refused


def _dropped(server: Server, database: Resource) -> bool:
    """Whether DELETE would drop a database that is not ours alone."""
    if is_embedded(server) or database.provisioning_state == "Failed":
        return False
    policy = database.properties.get("deletionPolicy")
    if not database.observed.get("adopted"):
        policy = policy or server.properties.get("deletionPolicy")
    return policy == "Drop"
