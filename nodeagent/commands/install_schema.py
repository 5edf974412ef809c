"""Roles, schemas, key and identity of an account, in one transaction."""

import msgspec

from muster.core.db import Connection
from muster.core.sql import Queries
from nodeagent import roles, schema
from nodeagent.invocation import Invocation
from nodeagent.protocol import SchemaInstalled
from nodeagent.schema import SchemaOwnership, SchemaState

A = Queries("nodeagent.sql", "administer.sql")


async def run(invocation: Invocation) -> str:
    async with invocation.services.databases.administer(
        invocation.access, invocation.spec.timeout
    ) as connection:
        schema.refuse_old(connection)
        state = await schema.find(connection, invocation)
        if state.ownership is SchemaOwnership.FOREIGN:
            raise schema.occupied()
        recorded = await schema.recall(connection, invocation, state)
        if recorded is not None:
            return recorded
        await roles.ensure(connection, invocation)
        if invocation.args.revoke_public:
            await roles.close_to_public(connection, invocation)
        await _own(connection, invocation, state)
        async with schema.owner(connection, invocation.roles):
            await schema.bring_up_to_date(
                connection, invocation.roles, invocation.services.expected_schema, every=True
            )
            result = await _settle(connection, invocation)
            await schema.conclude(connection, invocation, state, result)
        return result


async def _own(connection: Connection, invocation: Invocation, state: SchemaState) -> None:
    """Both schemas are there and belong to the owner role, with all that is in them."""
    if state.ownership is SchemaOwnership.KEPT:
        for row in await connection.fetch(A.change_owner, invocation.roles.owner):
            await connection.execute(row[0])
    for row in await connection.fetch(A.create_schemas, invocation.roles.owner):
        await connection.execute(row[0])


async def _settle(connection: Connection, invocation: Invocation) -> str:
    wanted = invocation.services.expected_schema
    row = await connection.fetchrow(
        A.put_instance,
        invocation.account_uid,
        invocation.args.identity,
        wanted.version,
        wanted.min_engine_version,
    )
    assert row is not None
    await connection.execute(A.retire_keys, invocation.args.public_key)
    await connection.execute(A.put_key, invocation.args.public_key)
    return msgspec.json.encode(SchemaInstalled(**dict(row))).decode()
