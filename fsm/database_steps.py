"""The work in each state of a database; every step may be repeated."""

import asyncpg

from fsm.administrator import is_embedded, login_of, session
from fsm.context import Context
from fsm.lifecycle_table import DELETING, Done, Outcome, Wait
from fsm.store import Resource, parent_of
from muster.core.errors import Conflict, Forbidden, NotFound
from muster.core.sql import Queries

T = Queries("fsm.sql", "target.sql")

EXISTED = "existed"  # the answer from before anything was made
WITH_FORCE = 130_000  # server_version_num since which DROP DATABASE can end sessions


async def look(ctx: Context) -> Outcome:
    """Was it there before us? Asked once per life: a repeat must not take our own work for theirs."""
    server = await _server(ctx)
    if isinstance(server, Wait):
        return server
    if EXISTED in ctx.scratch:
        return Done()
    if login_of(server) is None:
        return Done(scratch={EXISTED: True})
    async with session(ctx.services, server) as connection:
        existed = await connection.fetchval(T.database_exists, ctx.resource.name)
    return Done(scratch={EXISTED: existed})


async def create(ctx: Context) -> Outcome:
    if ctx.scratch[EXISTED]:
        return Done(observed={"adopted": True})
    server = await _server(ctx)
    if isinstance(server, Wait):
        return server
    name = ctx.resource.name
    async with session(ctx.services, server) as connection:
        statement = await connection.fetchval(T.create_database, name)
        try:
            await connection.execute(statement)
        except asyncpg.DuplicateDatabaseError:
            # Ours from an earlier try, unless a stranger was quicker since we looked.
            if not await connection.fetchval(T.database_is_ours, name):
                return Done(observed={"adopted": True}, scratch={EXISTED: True})
        except asyncpg.InsufficientPrivilegeError as error:
            raise Forbidden(
                f"The administrator may not create databases ({error}). "
                f'Have an administrator run: {statement} owner "{login_of(server)}";',
                code="DatabaseCreateDenied",
            ) from error
    return Done(observed={"adopted": None})


async def inspect(ctx: Context) -> Outcome:
    """That it is there, and how big it is if that may be read."""
    server = await _server(ctx)
    if isinstance(server, Wait):
        return server
    observed = {
        "databaseId": str(ctx.resource.uid),
        "creationDate": ctx.resource.created_at.isoformat().replace("+00:00", "Z"),
        "sizeBytes": None,
        "conditions": None,
    }
    if login_of(server) is None:
        message = "The server has no administratorLogin: the database was not checked."
        condition = {"type": "NotVerified", "status": "True", "message": message}
        return Done(observed=observed | {"conditions": [condition]})
    async with session(ctx.services, server) as connection:
        row = await connection.fetchrow(T.database_size, ctx.resource.name)
    if row is None:
        raise NotFound(
            f"Database '{ctx.resource.name}' is not on the server.", code="DatabaseNotOnServer"
        )
    return Done(observed=observed | {"sizeBytes": row["size"]})


async def drop(ctx: Context) -> Outcome:
    """Drops it, or only forgets it; what we neither made nor found is never touched."""
    server = await parent_of(ctx.services.db, ctx.resource.uid)
    if server is None or not _to_be_dropped(ctx, server):
        return Done()
    if waits := _unsettled(ctx, server):
        return waits
    name = ctx.resource.name
    async with session(ctx.services, server) as connection:
        about = await connection.fetchrow(T.about_server)
        assert about is not None
        force = bool(ctx.payload.get("force")) or is_embedded(server)
        # PostgreSQL itself would wait five seconds for them before it refuses.
        if not force and (others := await connection.fetchval(T.other_sessions, name)):
            raise Conflict(f"{others} sessions use database '{name}'.", code="DatabaseInUse")
        if force and about["number"] < WITH_FORCE:
            await connection.execute(T.end_sessions, name)
            force = False
        await connection.execute(await connection.fetchval(T.drop_database, name, force))
    return Done()


def _to_be_dropped(ctx: Context, server: Resource) -> bool:
    if EXISTED not in ctx.scratch or ctx.payload.get("cascade") or login_of(server) is None:
        return False
    if DELETING in (server.provisioning_state, server.observed.get("state")):
        return False
    own = ctx.resource.properties.get("deletionPolicy")
    if ctx.scratch[EXISTED]:
        return bool(own == "Drop")
    default = "Drop" if is_embedded(server) else "Retain"
    return (own or server.properties.get("deletionPolicy") or default) == "Drop"


async def _server(ctx: Context) -> Resource | Wait:
    server = await parent_of(ctx.services.db, ctx.resource.uid)
    if server is None:
        raise NotFound("The server of this database was deleted.", code="ParentResourceNotFound")
    return _unsettled(ctx, server) or server


def _unsettled(ctx: Context, server: Resource) -> Wait | None:
    """What is being changed on the server is not verified yet."""
    if server.provisioning_state in {"Creating", "Updating"}:
        why = f"the server is {server.provisioning_state.lower()}"
        return Wait(ctx.services.settings.poll_busy, why)
    return None
