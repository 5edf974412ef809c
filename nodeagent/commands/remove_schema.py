"""Nothing of the account stays but, unless asked, its schemas, which the administrator then owns."""

import msgspec

from muster.core.db import Connection
from muster.core.errors import NotFound
from muster.core.sql import Queries
from nodeagent import journal, roles, schema
from nodeagent.invocation import Invocation
from nodeagent.protocol import SchemaRemoved
from nodeagent.schema import SchemaOwnership, SchemaState

A = Queries("nodeagent.sql", "administer.sql")


async def run(invocation: Invocation) -> str:
    await invocation.services.databases.forget(invocation.roles.all)
    try:
        async with invocation.services.databases.administer(
            invocation.access, invocation.spec.timeout
        ) as connection:
            state = await schema.find(connection, invocation)
            return await _remove(connection, invocation, state)
    except NotFound as fault:
        if fault.code != "TargetDatabaseNotFound":
            raise
    # The database is gone and took the schemas along; roles are the server's.
    maintenance = invocation.access.endpoint.maintenance_database
    async with invocation.services.databases.administer(
        invocation.access, invocation.spec.timeout, database=maintenance
    ) as connection:
        await roles.drop(connection, invocation)
    return _result(kept=False)


async def _remove(connection: Connection, invocation: Invocation, state: SchemaState) -> str:
    ours = state.ownership is SchemaOwnership.MINE or state.was_mine
    result = _result(kept=ours and not invocation.args.drop_schema)
    if ours and invocation.args.drop_schema:
        await connection.execute(A.drop_schemas)
    elif state.ownership is SchemaOwnership.MINE:
        await _let_go(connection, invocation, state, result)
    keeps = state.ownership is SchemaOwnership.MINE and not invocation.args.drop_schema
    for row in await connection.fetch(A.revoke_statements, list(invocation.roles.all), keeps):
        await connection.execute(row[0])
    await roles.drop(connection, invocation)
    return result


async def _let_go(
    connection: Connection, invocation: Invocation, state: SchemaState, result: str
) -> None:
    async with schema.owner(connection, invocation.roles):
        # First: who is waited for may need the other tables.
        await connection.execute(A.hold_instance)
        if state.has_journal:
            await journal.begin(connection, invocation)
            await journal.end(connection, invocation, result)
        await connection.execute(A.release)
    for row in await connection.fetch(A.change_owner, state.login):
        await connection.execute(row[0])


def _result(*, kept: bool) -> str:
    return msgspec.json.encode(SchemaRemoved(schema_kept=kept)).decode()
