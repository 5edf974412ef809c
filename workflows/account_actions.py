"""Actions on a job account: pause, resume, acknowledge, doctor."""

from typing import Any

import msgspec

from fsm import machines
from fsm.account_steps import ACKNOWLEDGED
from fsm.launch.queue import Queue
from muster.core.errors import Conflict, Fault
from muster.core.ids import ResourceId
from muster.core.sql import Queries
from nodeagent.items import Diagnose, Diagnosed
from nodeagent.protocol import Pause, Resume
from workflows import access, admission, diagnosis, items, resources
from workflows.accounts import KIND
from workflows.model.resource import Call
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store

Q = Queries("workflows.sql", "account.sql")
CANCEL = "cancelRunning"


async def pause(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """Nothing new starts until `resume`; needs only Job Operator, and no lock forbids it."""
    return await _set_paused(services, call, id, "pause", Pause(cancel_running=call.flag(CANCEL)))


async def resume(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    return await _set_paused(services, call, id, "resume", Resume())


async def acknowledge(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """The operator says that a restored or cloned control database is meant: the one that is shown."""
    async with services.db.transaction() as tx:
        account = await store.lock(tx, id.key, call.principal.tenant_id)
        if account is None:
            await admission.parents(tx, id, call.principal.tenant_id)
            raise admission.missing(id, wanted=id, code=KIND.absent)
        machine = await machines.get(tx, account.resource.uid)
        if machine is None or machine.state not in {"disabled", "recovering"}:
            raise Conflict(f"'{id.name}' is not disabled: there is nothing to acknowledge.")
        seen = [each["type"] for each in account.resource.observed.get("conditions") or []]
        await machines.signal(
            tx, uid=account.resource.uid, name="acknowledge", payload={ACKNOWLEDGED: seen}
        )
        await audit.accepted(tx, call, KIND.action("acknowledge/action"), id)
    return {"acknowledged": True}


async def sealing_key(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """What a password is sealed with before it is given to jobs.sp_add_credential; nothing secret."""
    await resources.get(services, call, id)
    here = await access.of(services, call, id)
    return {
        "publicKey": here.public_key,
        "accountUid": str(here.uid),
        "identity": str(here.identity),
    }


async def doctor(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """Which step waits for what, since when, what was tried, and what to do."""
    shown = await resources.get(services, call, id, absent=KIND.absent)
    machine = await machines.get(services.db, shown.uid)
    settings = services.settings
    facts = diagnosis.Facts(
        account=shown,
        machine=machine,
        workloads=await Queue(settings).of_account(services.db, shown.uid),
        launchers=await services.db.fetchval(
            Q.live_launchers, settings.launcher_group, settings.workload_silent
        ),
        agents=await services.db.fetchval(Q.live_agents, id.parent.key, settings.node_agent_silent),
        now=services.clock.now(),
        database=await _diagnosed(services, call, id),
    )
    return diagnosis.document(facts)


async def _diagnosed(services: Services, call: Call, id: ResourceId) -> Diagnosed | None:
    """None where the control database can't be asked: the other facts say why."""
    try:
        diagnosis: Diagnosed = await access.look(services, call, id, Diagnose())
    except Fault:
        return None
    return diagnosis


async def _set_paused(
    services: Services, call: Call, id: ResourceId, action: str, command: msgspec.Struct
) -> dict[str, Any]:
    here = await items.enter(services, call, id, locks=False)
    answer = await items.write(services, call, id, here, KIND.action(f"{action}/action"), command)
    await services.db.execute(Q.set_observed, here.uid, {"paused": answer.paused})
    shown = {"paused": answer.paused, "canceled": answer.canceled}
    return {name: value for name, value in shown.items() if value is not None}
