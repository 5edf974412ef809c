"""All that ever ran on one target, whichever job it belonged to."""

from muster.core.ids import ResourceId
from workflows import executions
from workflows.model.resource import Call, Page
from workflows.services import Services

SERVER, DATABASE, SCHEMA = "targetServerName", "targetDatabaseName", "schema"


async def list_page(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """Newest first. A target that never ran has an empty history: names may come from any query."""
    wanted, _ = executions.filters(call.query)
    names = {"server": SERVER, "database": DATABASE, "schema": SCHEMA}
    wanted |= {name: call.query[key] for name, key in names.items() if key in call.query}
    return await executions.OF_TARGET.page(
        services, call, id, after, top, kind="targets", filters=wanted
    )
