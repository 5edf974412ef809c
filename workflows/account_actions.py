"""What can be asked of a job account beside its definition: pause, resume, acknowledge, doctor."""

from dataclasses import replace
from typing import Any

import msgspec

from fsm import control, machines
from fsm.context import Context, Services
from fsm.launch.queue import Queue
from fsm.lifecycles import LIFECYCLES
from fsm.store import Resource as Account
from fsm.store import resource_by_key
from muster.core.errors import Conflict
from muster.core.ids import ResourceId
from muster.core.sql import Queries
from nodeagent.client import AgentClient
from nodeagent.protocol import Pause, Resume
from workflows import admission, diagnosis, resources
from workflows.accounts import KIND
from workflows.model.resource import Call
from workflows.plane import Plane
from workflows.store import audit
from workflows.store import resources as store

Q = Queries("workflows.sql", "account.sql")


async def pause(plane: Plane, call: Call, id: ResourceId) -> dict[str, Any]:
    """Nothing new starts until `resume`; needs only Job Operator, and no lock forbids it."""
    return await _set_paused(plane, call, id, "pause", Pause())


async def resume(plane: Plane, call: Call, id: ResourceId) -> dict[str, Any]:
    return await _set_paused(plane, call, id, "resume", Resume())


async def acknowledge(plane: Plane, call: Call, id: ResourceId) -> dict[str, Any]:
    """The operator says that a restored or cloned control database is meant."""
    async with plane.db.transaction() as tx:
        found = await store.lock(tx, id.key, call.principal.tenant_id)
        if found is None:
            raise admission.missing(id, wanted=id)
        machine = await machines.get(tx, found.resource.uid)
        if machine is None or machine.state not in {"disabled", "recovering"}:
            raise Conflict(f"'{id.name}' is not disabled: there is nothing to acknowledge.")
        await machines.signal(
            tx, uid=found.resource.uid, name="acknowledge", payload={"acknowledged": True}
        )
        await audit.accepted(tx, call, KIND.action("acknowledge/action"), id)
    return {"acknowledged": True}


async def doctor(plane: Plane, call: Call, id: ResourceId) -> dict[str, Any]:
    """Which step waits for what, since when, what was tried, and what to do."""
    shown = await resources.get(plane, call, id)
    machine = await machines.get(plane.db, shown.uid)
    settings = plane.settings
    facts = diagnosis.Facts(
        account=shown,
        machine=machine,
        workloads=await Queue(settings).of_account(plane.db, shown.uid),
        launchers=await plane.db.fetchval(
            Q.live_launchers, settings.launcher_group, settings.workload_silent
        ),
        agents=await plane.db.fetchval(Q.live_agents, id.parent.key, settings.node_agent_silent),
        now=plane.clock.now(),
    )
    return diagnosis.told(facts)


async def _set_paused(
    plane: Plane, call: Call, id: ResourceId, action: str, command: msgspec.Struct
) -> dict[str, Any]:
    await resources.get(plane, call, id)
    account = await resource_by_key(plane.db, id.key)
    assert account is not None
    async with AgentClient(plane.settings, plane.db, plane.keyring) as agent:
        where = await control.of(await _context(plane, call, account, agent))
        answer = await where.operate(command)
    async with plane.db.transaction() as tx:
        await tx.execute(Q.set_observed, account.uid, {"paused": answer.paused})
        await audit.accepted(tx, call, KIND.action(f"{action}/action"), id)
    return {"paused": answer.paused}


async def _context(plane: Plane, call: Call, account: Account, agent: AgentClient) -> Context:
    """The command's id is the request's: a repeated request is answered by the journal."""
    machine = await machines.get(plane.db, account.uid)
    assert machine is not None
    services = Services(
        settings=plane.settings,
        db=plane.db,
        keyring=plane.keyring,
        connector=plane.connector,
        lifecycles=LIFECYCLES,
        agent=agent,
        queue=Queue(plane.settings),
    )
    request = replace(machine, state=f"{call.method} {call.idempotency_key or call.request_id}")
    return Context(services=services, machine=request, resource=account)
