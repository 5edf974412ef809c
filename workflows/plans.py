"""Plans of a job: what a start would run, resolved and stored without starting it."""

from muster.core.ids import ResourceId
from workflows import engine_requests, executions
from workflows.items import Family
from workflows.model.item import Item
from workflows.model.resource import Call
from workflows.services import Services

FAMILY = Family("jobs/plans")


async def make(services: Services, call: Call, id: ResourceId) -> Item:
    """A repeated request gets the plan of the first one."""
    await executions.check_start(services, call, id)
    plan_id, _ = await engine_requests.ask(
        services, call, id, f"{id.type}/plan/action", "plan", {"job": id.name}
    )
    return await FAMILY.get(services, call, id.child(("plans", str(plan_id))))
