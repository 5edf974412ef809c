"""Plans of a job: what a start would run, resolved and stored without starting it."""

import contextlib

from muster.core.errors import NotFound
from muster.core.ids import ResourceId
from workflows import engine_requests, executions
from workflows.items import Family, command_of, enter
from workflows.model.item import Item
from workflows.model.resource import Call
from workflows.services import Services

FAMILY = Family("jobs/plans")


async def make(services: Services, call: Call, id: ResourceId) -> Item:
    """A repeated request gets the plan of the first one."""
    here = await enter(services, call, id, locks=False)
    plan_id = command_of(call, id, here)  # of the request to the engine
    plan = id.child(("plans", str(plan_id)))
    if call.idempotency_key:
        with contextlib.suppress(NotFound):
            return await FAMILY.get(services, call, plan)
    await executions.check_start(services, call, id)
    action = f"{id.type}/plan/action"
    await engine_requests.ask(services, call, id, "plan", {"job": id.name}, action)
    return await FAMILY.get(services, call, plan)
