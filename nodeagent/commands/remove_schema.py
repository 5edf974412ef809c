"""Nothing of the account stays but, unless asked, its schemas, which the administrator then owns."""

import msgspec

from muster.core.db import Connection
from muster.core.errors import NotFound
from nodeagent import journal, roles, schema
from nodeagent.invocation import Work
from nodeagent.protocol import SchemaRemoved
from nodeagent.schema import Found, Whose
from nodeagent.sql_administer import A


async def run(work: Work) -> str:
    await work.means.databases.forget(work.roles.all)
    try:
        async with work.means.databases.administer(work.access, work.spec.timeout) as connection:
            found = await schema.find(connection, work)
            return await _remove(connection, work, found)
    except NotFound as fault:
        if fault.code != "TargetDatabaseNotFound":
            raise
    # The database is gone and took the schemas along; roles are the server's.
    maintenance = work.access.endpoint.maintenance_database
    async with work.means.databases.administer(
        work.access, work.spec.timeout, database=maintenance
    ) as connection:
        await roles.drop(connection, work)
    return _result(kept=False)


async def _remove(connection: Connection, work: Work, found: Found) -> str:
    ours = found.whose is Whose.MINE or found.was_mine
    result = _result(kept=ours and not work.args.drop_schema)
    if ours and work.args.drop_schema:
        await connection.execute(A.drop_schemas)
    elif found.whose is Whose.MINE:
        await _let_go(connection, work, found, result)
    keeps = found.whose is Whose.MINE and not work.args.drop_schema
    for row in await connection.fetch(A.revoke_statements, list(work.roles.all), keeps):
        await connection.execute(row[0])
    await roles.drop(connection, work)
    return result


async def _let_go(connection: Connection, work: Work, found: Found, result: str) -> None:
    async with schema.owner(connection, work.roles):
        # First: who is waited for may need the other tables.
        await connection.execute(A.hold_instance)
        if found.has_journal:
            await journal.begin(connection, work)
            await journal.end(connection, work, result)
        await connection.execute(A.release)
    for row in await connection.fetch(A.change_owner, found.login):
        await connection.execute(row[0])


def _result(*, kept: bool) -> str:
    return msgspec.json.encode(SchemaRemoved(schema_kept=kept)).decode()
