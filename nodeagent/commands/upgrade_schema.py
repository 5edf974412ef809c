"""The schema is as new as this agent; roles, key and identity stay as they are."""

import msgspec

from muster.core.errors import NotFound
from nodeagent import roles, schema
from nodeagent.invocation import Work
from nodeagent.protocol import SchemaUpgraded
from nodeagent.schema import Whose
from nodeagent.sql_administer import A


async def run(work: Work) -> str:
    wanted = work.means.blueprint
    async with work.means.databases.administer(work.access, work.spec.timeout) as connection:
        found = await schema.find(connection, work)
        if found.whose is not Whose.MINE:
            raise NotFound(
                "The database does not hold the schema of this account.",
                code="ControlSchemaMissing",
            )
        known = await schema.recall(connection, work, found)
        if known is not None:
            return known
        if work.args.revoke_public:
            await roles.close_to_public(connection, work)
        result = msgspec.json.encode(SchemaUpgraded(schema_version=wanted.version)).decode()
        async with schema.owner(connection, work.roles):
            await schema.bring_up_to_date(connection, work.roles, wanted, every=False)
            await connection.execute(A.set_version, wanted.version, wanted.min_engine_version)
            await schema.conclude(connection, work, found, result)
        return result
