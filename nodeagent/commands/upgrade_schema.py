"""The schema is as new as this agent; roles, key and identity stay as they are."""

import msgspec

from muster.core.errors import NotFound
from muster.core.sql import Queries
from nodeagent import roles, schema
from nodeagent.invocation import Invocation
from nodeagent.protocol import SchemaUpgraded
from nodeagent.schema import SchemaOwnership

A = Queries("nodeagent.sql", "administer.sql")


async def run(invocation: Invocation) -> str:
    wanted = invocation.services.expected_schema
    async with invocation.services.databases.administer(
        invocation.access, invocation.spec.timeout
    ) as connection:
        state = await schema.find(connection, invocation)
        if state.ownership is not SchemaOwnership.MINE:
            raise NotFound(
                "The database does not hold the schema of this account.",
                code="ControlSchemaMissing",
            )
        recorded = await schema.recall(connection, invocation, state)
        if recorded is not None:
            return recorded
        if invocation.args.revoke_public:
            await roles.close_to_public(connection, invocation)
        result = msgspec.json.encode(SchemaUpgraded(schema_version=wanted.version)).decode()
        async with schema.owner(connection, invocation.roles):
            await schema.bring_up_to_date(connection, invocation.roles, wanted, every=False)
            await connection.execute(A.set_version, wanted.version, wanted.min_engine_version)
            await schema.conclude(connection, invocation, state, result)
        return result
