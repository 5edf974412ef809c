"""What the workflows must see on a user's server before they decide."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from muster.core import connect
from muster.core.errors import Conflict, InvalidRequest
from muster.core.sql import Queries
from workflows.model.resource import Resource
from workflows.plane import Plane
from workflows.store.resources import Stored
from workflows.validation.database import RESERVED

Q = Queries("workflows.sql", "target.sql")


async def enumerate_databases(plane: Plane, server: Stored) -> list[dict[str, Any]]:
    async with administrator(plane, server) as connection:
        rows = await connection.fetch(Q.enumerate_databases)
    return [
        {
            "name": row["name"],
            "owner": row["owner"],
            "sizeBytes": row["size_bytes"],
            "included": (reason := left_out(row)) is None,
            "reason": reason,
        }
        for row in rows
    ]


def left_out(row: asyncpg.Record) -> str | None:
    """Why jobs do not reach a database by enumeration, or None when they do."""
    if row["template"]:
        return "Template"
    if row["invalid"]:
        return "Invalid"
    if not row["connectable"]:
        return "ConnectionsNotAllowed"
    if row["name"].lower() in RESERVED:
        return "ServersOwn"
    if not row["granted"]:
        return "ConnectNotGranted"
    return None


async def refuse_drop(plane: Plane, server: Stored, database: str) -> None:
    """Conflict when somebody works in the database or it holds rows."""
    async with administrator(plane, server) as connection:
        sessions = await connection.fetch(Q.foreign_sessions, database)
    if sessions:
        who = ", ".join(
            f"{s['login']} ({s['application_name'] or s['address'] or s['pid']})" for s in sessions
        )
        raise Conflict(
            f"The database '{database}' is in use by {who}. {FORCE}", code="DatabaseInUse"
        )
    try:
        async with administrator(plane, server, database=database) as connection:
            table = await connection.fetchval(Q.table_with_rows)
    except InvalidRequest as gone:
        if gone.code == "TargetDatabaseMissing":
            return
        raise
    if table:
        raise Conflict(
            f"The database '{database}' holds rows, for example in {table}. {FORCE}",
            code="DatabaseNotEmpty",
        )


FORCE = "Add ?forceDeletionTypes=Microsoft.Sql/servers/databases to drop it all the same."


@contextlib.asynccontextmanager
async def administrator(
    plane: Plane, server: Stored, *, database: str | None = None
) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A session of the server's administrator, closed in any case."""
    resource = server.resource
    login = resource.properties.get("administratorLogin")
    sealed = server.sealed.get("administratorLoginPassword")
    if not login or not sealed:
        raise Conflict(
            f"Server '{resource.name}' has no administratorLogin.", code="ServerHasNoAdministrator"
        )
    password = plane.keyring.open(sealed, f"{resource.uid}/administratorLoginPassword")
    endpoint = endpoint_of(plane, server)
    async with plane.connector.session(
        endpoint,
        user=login,
        password=password,
        database=database,
        application_name="muster/workflows",
    ) as connection:
        yield connection


def endpoint_of(plane: Plane, server: Stored) -> connect.Endpoint:
    """Where the server is: as registered, or where its cluster runs."""
    resource: Resource = server.resource
    given = resource.properties.get("endpoint") or resource.observed.get("endpoint")
    if given is None:
        raise Conflict(
            f"The server '{resource.name}' is not ready yet.", code="ServerNotReady", retry_after=2
        )
    key = server.sealed.get("endpoint.clientKey")
    if key:
        opened = plane.keyring.open(key, f"{resource.uid}/endpoint.clientKey").reveal()
        given = given | {"clientKey": opened}
    return connect.endpoint(given)
