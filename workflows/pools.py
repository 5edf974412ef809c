"""Elastic pools: named parts of a server that share a budget."""

from datetime import datetime
from functools import partial

import msgspec

from muster.core.db import Connection
from muster.core.errors import Conflict
from muster.core.ids import ResourceId
from workflows import admission, authorization, resources
from workflows.admission import World
from workflows.model.pool import PoolProperties
from workflows.model.resource import DATABASE, POOL, Call, Deleted, Resource
from workflows.resource_kind import Draft, Kind
from workflows.services import Services
from workflows.store.resources import Content, Q
from workflows.validation.common import one_line
from workflows.validation.database import pool as validate


async def admit(
    tx: Connection, call: Call, draft: Draft, old: Resource | None, world: World
) -> None:
    del tx, call, draft, old
    admission.parent_ready(world)


def fill(draft: Draft, world: World) -> Content:
    here = world.parent.resource.location if world.parent else None
    return msgspec.structs.replace(draft.content, location=draft.content.location or here)


def observed(now: datetime) -> dict[str, str]:
    return {"state": "Ready", "creationDate": now.isoformat().replace("+00:00", "Z")}


KIND = Kind(
    arm_type=POOL,
    properties=PoolProperties,
    validate=validate,
    admit=admit,
    fill=fill,
    observed=observed,
)

put = partial(resources.put, kind=KIND)
patch = partial(resources.patch, kind=KIND)
get = resources.get
list_page = partial(resources.list_page, arm_type=POOL)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    members = await services.db.fetch(Q.pool_members, id.parent.key, id.key)
    if members:
        ids = [id.parent.child(("databases", row["name"])) for row in members]
        read = f"{DATABASE}/read"
        names = [
            each.name
            for each in ids
            if await authorization.allows(services, call.principal, read, each)
        ]
        members_text = one_line(names) if names else f"{len(members)} that you may not read"
        raise Conflict(
            f"The elastic pool '{id.name}' still has databases: {members_text}.",
            code="ElasticPoolNotEmpty",
        )
    return await resources.delete(services, call, id, KIND)
