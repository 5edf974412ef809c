"""Roles, schemas, key and identity of an account, in one transaction."""

import msgspec

from muster.core.db import Connection
from nodeagent import roles, schema
from nodeagent.invocation import Work
from nodeagent.protocol import SchemaInstalled
from nodeagent.schema import Found, Whose
from nodeagent.sql_administer import A


async def run(work: Work) -> str:
    async with work.means.databases.administer(work.access, work.spec.timeout) as connection:
        schema.refuse_old(connection)
        found = await schema.find(connection, work)
        if found.whose is Whose.FOREIGN:
            raise schema.occupied()
        known = await schema.recall(connection, work, found)
        if known is not None:
            return known
        await roles.ensure(connection, work)
        if work.args.revoke_public:
            await roles.close_to_public(connection, work)
        await _own(connection, work, found)
        async with schema.owner(connection, work.roles):
            await schema.bring_up_to_date(connection, work.roles, work.means.blueprint, every=True)
            result = await _settle(connection, work)
            await schema.conclude(connection, work, found, result)
        return result


async def _own(connection: Connection, work: Work, found: Found) -> None:
    """Both schemas are there and belong to the owner role, with all that is in them."""
    if found.whose is Whose.KEPT:
        for row in await connection.fetch(A.change_owner, work.roles.owner):
            await connection.execute(row[0])
    for row in await connection.fetch(A.create_schemas, work.roles.owner):
        await connection.execute(row[0])


async def _settle(connection: Connection, work: Work) -> str:
    wanted = work.means.blueprint
    row = await connection.fetchrow(
        A.put_instance,
        work.account_uid,
        work.args.identity,
        wanted.version,
        wanted.min_engine_version,
    )
    assert row is not None
    await connection.execute(A.retire_keys, work.args.public_key)
    await connection.execute(A.put_key, work.args.public_key)
    return msgspec.json.encode(SchemaInstalled(**dict(row))).decode()
