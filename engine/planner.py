"""Makes the targets of a step: its group is resolved, stored as a snapshot, and planned in one statement."""

from typing import Any
from uuid import uuid5

import msgspec

from engine.floor import Plan, Run
from engine.requests import read_document
from engine.resolver import Found, Resolver, Target
from engine.road import Q
from engine.store import Store
from engine.targets import Targets
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach

LIMIT = 900.0  # seconds to store and plan; a fleet has a million targets at most
NOT_YET = {
    "rollout": "waves",
    "verify": "verification",
    "output": "output options",
}  # options that this version keeps and can't carry out


class Planner:
    def __init__(self, store: Store, targets: Targets) -> None:
        self._store = store
        self._targets = targets

    async def plan(self, run: Run, plan: Plan) -> None:
        """A Fault says why there are none; done twice, the first set stays."""
        await self._refuse(run, plan)
        document = await read_document(self._store, plan.target_group_name)
        found = await Resolver(document, self._targets.listing(document)).resolve()
        await reach("core.before_plan")
        snapshot = uuid5(run.id, f"step {plan.step_id}")
        columns = _columns(found)
        epoch = self._store.epoch
        async with self._store.calling(LIMIT) as tx:
            await tx.execute(Q.plenty_of_time)
            await tx.execute(
                Q.store_snapshot,
                epoch,
                snapshot,
                document.target_group_id,
                bytes.fromhex(document.hash),
                document.directory.revision,
                msgspec.json.encode(_left_out(found)).decode(),
                *columns,
            )
            await tx.execute(Q.plan_targets, epoch, run.id, plan.step_id, snapshot)
        await reach("core.planned")

    async def _refuse(self, run: Run, plan: Plan) -> None:
        """What would be passed over in silence is refused: a status must not tell more than was done."""
        async with self._store.calling() as tx:
            text = await tx.fetchval(Q.step_document, run.job_id, run.version, plan.step_id)
        step: dict[str, Any] = msgspec.json.decode(text)
        wanted = [word for name, word in NOT_YET.items() if name in plan.options]
        if step.get("hasOutput"):
            wanted.append("an output table")
        if plan.options.get("advance") == "perTarget":
            wanted.append("advance perTarget")
        if wanted:
            message = f"This version can't carry out {', '.join(wanted)}; nothing was started."
            raise InvalidRequest(message, code="NotSupported")


def reason_of(fault: Fault) -> str:
    return "NotSupported" if fault.code == "NotSupported" else "TargetsUnresolved"


def _columns(found: Found) -> tuple[list[Any], ...]:
    """As store_snapshot_v1 takes them."""
    rows = [_row(target) for target in found.targets]
    return tuple(list(column) for column in zip(*rows, strict=True)) or tuple([] for _ in range(9))


def _row(target: Target) -> tuple[Any, ...]:
    labels = msgspec.json.encode(target.server.labels | target.labels).decode()
    return (
        target.type,
        target.server.server_id,
        target.server.name,
        target.pool,
        target.database,
        target.schema,
        labels,
        target.credential_id,
        target.rule,
    )


def _left_out(found: Found) -> list[dict[str, str]]:
    return [
        {"server": each.server, "database": each.database, "reason": each.reason}
        for each in found.left_out
    ]
