"""What the workflows check on a user's server before they decide."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fsm import administrator
from fsm.store import Resource as Server
from muster.core.db import Connection
from muster.core.enumeration import left_out
from muster.core.errors import Conflict, NotFound, Unavailable
from muster.core.sql import Queries
from workflows.services import Services
from workflows.validation.common import one_line

Q = Queries("workflows.sql", "target.sql")


async def enumerate_databases(services: Services, server: Server) -> list[dict[str, Any]]:
    own = services.settings.provider_databases
    async with session(services, server) as connection:
        return [
            {
                "name": row["name"],
                "owner": row["owner"],
                "sizeBytes": row["size_bytes"],
                "included": (reason := left_out(dict(row), own)) is None,
                "reason": reason,
            }
            for row in await connection.fetch(Q.enumerate_databases)
        ]


async def refuse_drop(services: Services, server: Server, database: str) -> None:
    """Conflict when the database is in use or holds rows."""
    async with session(services, server) as connection:
        sessions = await connection.fetch(Q.foreign_sessions, database)
    if sessions:
        who = one_line(f"{s['login']} ({s['application_name'] or s['address']})" for s in sessions)
        raise Conflict(
            f"The database '{database}' is in use by {who}. {FORCE}", code="DatabaseInUse"
        )
    try:
        async with session(services, server, database) as connection:
            table = await _table_with_rows(connection)
    except NotFound:
        return  # it is not there: nothing can be lost
    if table:
        raise Conflict(
            f"The database '{database}' holds rows, for example in {table}. {FORCE}",
            code="DatabaseNotEmpty",
        )


async def _table_with_rows(connection: Connection) -> str | None:
    """A table that may not be read counts as one that holds rows."""
    for row in await connection.fetch(Q.tables_with_pages):
        if row["question"] is None or await connection.fetchval(row["question"]):
            return str(row["name"])
    return None


@contextlib.asynccontextmanager
async def session(
    services: Services, server: Server, database: str | None = None
) -> AsyncIterator[Connection]:
    """The administrator's. A customer's server that is away is a state of theirs, not ours."""
    try:
        async with administrator.session(services, server, database=database) as connection:
            yield connection
    except Unavailable as away:
        raise Conflict(away.message, code=away.code, context=away.context) from away


FORCE = "Add ?forceDeletionTypes=Microsoft.Sql/servers/databases to drop it all the same."
