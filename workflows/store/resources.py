"""Rows of table `resource` and the structs of the workflows."""

from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from muster.core.db import Connection, Database, Row
from muster.core.errors import Conflict, Fault, InvalidRequest
from muster.core.ids import ResourceId
from muster.core.sql import Queries
from workflows.model.account import ACCOUNT
from workflows.model.resource import Principal, Resource

Q = Queries("workflows.sql", "resource.sql")

FIELDS = tuple(f.name for f in msgspec.structs.fields(Resource))


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A resource together with what never leaves: its sealed secrets."""

    resource: Resource
    sealed: dict[str, str]


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of a resource that a customer can say."""

    location: str | None = None
    tags: dict[str, str] = {}
    sku: dict[str, Any] | None = None
    identity: dict[str, Any] | None = None
    kind: str | None = None
    properties: dict[str, Any] = {}


def resource(row: Row) -> Resource:
    result = Resource(**{name: row[name] for name in FIELDS})
    return _with_heartbeat(result, row.get("heartbeat_at"))


def _with_heartbeat(resource: Resource, at: datetime | None) -> Resource:
    """The engine's newest heartbeat is newer than the one that the account's last check stored."""
    instance = resource.observed.get("instance")
    if at is None or instance is None:
        return resource
    shown = {**instance, "lastHeartbeat": at.isoformat().replace("+00:00", "Z")}
    return msgspec.structs.replace(resource, observed={**resource.observed, "instance": shown})


def stored(row: Row | None) -> Stored | None:
    return Stored(resource=resource(row), sealed=row["sealed"]) if row else None


def plain(stored: Stored | None) -> Resource | None:
    return stored.resource if stored else None


async def get(db: Database | Connection, key: str, tenant_id: str) -> Stored | None:
    return stored(await db.fetchrow(Q.get_resource, key, tenant_id))


async def lock(tx: Connection, key: str, tenant_id: str) -> Stored | None:
    return stored(await tx.fetchrow(Q.lock_resource, key, tenant_id))


async def by_keys(tx: Connection, keys: list[str], tenant_id: str) -> dict[str, Stored]:
    rows = await tx.fetch(Q.get_resources, keys, tenant_id)
    return {row["key"]: Stored(resource=resource(row), sealed=row["sealed"]) for row in rows}


async def insert(
    tx: Connection,
    *,
    uid: UUID,
    id: ResourceId,
    type: str,
    parent_key: str | None,
    tenant_id: str,
    content: Content,
    sealed: dict[str, str],
    observed: dict[str, Any],
    state: str,
    who: Principal,
) -> Resource:
    group = id.resource_group and id.upto("resourceGroups").key
    try:
        row = await tx.fetchrow(
            Q.insert_resource,
            uid,
            id.key,
            id.text,
            type,
            id.name,
            parent_key,
            id.subscription and id.subscription.lower(),
            group,
            tenant_id,
            content.location,
            content.tags,
            content.sku,
            content.identity,
            content.kind,
            content.properties,
            observed,
            sealed,
            state,
            who.name or who.id,
            who.type.value,
        )
    except asyncpg.UniqueViolationError as error:
        raise taken(error, id) from error
    assert row is not None
    return resource(row)


async def update(
    tx: Connection,
    old: Resource,
    *,
    id: ResourceId,
    content: Content,
    sealed: dict[str, str],
    observed: dict[str, Any],
    state: str,
    who: Principal,
) -> Resource:
    row = await tx.fetchrow(
        Q.update_resource,
        old.uid,
        id.text,
        id.name,
        content.location,
        content.tags,
        content.sku,
        content.identity,
        content.kind,
        content.properties,
        observed,
        sealed,
        state,
        who.name or who.id,
        who.type.value,
    )
    assert row is not None
    return resource(row)


async def has_server(tx: Connection, subscription: str, name: str, tenant_id: str) -> bool:
    exists: bool = await tx.fetchval(Q.has_server, subscription, name, tenant_id)
    return exists


async def delete(tx: Connection, key: str, tenant_id: str) -> None:
    await tx.execute(Q.delete_resource, key, tenant_id)


def taken(error: asyncpg.UniqueViolationError, id: ResourceId) -> Fault:
    """The constraint that refused says which rule it was."""
    match error.constraint_name:
        case "a_server_name_is_taken_once":
            return Conflict(
                f"The server name '{id.name}' is taken; names are unique in this installation.",
                code="NameAlreadyExists",
                target="name",
            )
        case "one_account_per_control_database":
            return InvalidRequest(
                "The database is linked to another account.",
                code="JobAgentDatabaseAlreadyLinked",
                target="properties.databaseId",
            )
        case "one_assignment_of_a_role":
            return Conflict("The role assignment already exists.", code="RoleAssignmentExists")
        case _ if id.type == ACCOUNT:
            return InvalidRequest(
                f"The job account '{id.name}' was created by another request just now.",
                code="JobAgentAlreadyExists",
            )
        case _:
            return Conflict(f"'{id.name}' was created by another request just now.")
