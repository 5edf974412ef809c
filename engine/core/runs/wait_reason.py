"""Why a target waits, as the core knows it: the first thing on its way that is missing."""

from typing import Any
from uuid import UUID

from engine.context.cluster_state import ClusterState
from engine.model.reasons import WAIT
from engine.scheduling.resource_tree import Node
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import StepRun, WaitingTarget

UNITS = {
    "InstanceSlots": "task slots of the account",
    "ServerConnections": "connections of {}",
    "PoolConnections": "connections of the pool {}",
    "DatabaseSlots": "task slots of the database {}",
}


def why(view: ClusterState, run_id: UUID, step_id: int, ordinal: int) -> dict[str, Any]:
    floor = view.floor
    run = floor.runs.get(run_id) if floor else None
    if floor is None or run is None:
        return _told(
            None, "The engine does not hold this run: it is over, or was started just now."
        )
    step = run.step
    if step is None or step.plan.step_id != step_id:
        return _told("Overlap") if run.overlaps else _told(None, "Its step is not at work.")
    if not step.is_queued:
        return _told("Resolving")
    target = step.waiting.get(ordinal)
    if target is not None:
        return _waits(view, floor, step, target)
    held = ordinal in floor.held(step)
    return _told("Reserved") if held else _told(None, "It waits for nothing.")


def _waits(
    view: ClusterState, floor: RunState, step: StepRun, target: WaitingTarget
) -> dict[str, Any]:
    if not view.open:
        return _told("AccountPaused")
    if floor.tree.is_paused(step.run.job_id):
        return _told("JobPaused")
    if target.due is not None:
        return _told(
            None, "Its pause is just over.", notBefore=target.due
        )  # for what, the rows say
    if target.ordinal not in target.queue.items:
        return _told(None, "Its time is over.")  # and the database is being told so
    full = floor.policy.why(target.queue)
    if full is None:
        return _told(None, "It is about to be reserved.", ahead=_ahead(target))
    return _told(
        full.reason,
        _counted(full),
        node=full.name,
        used=full.used,
        slots=full.slots,
        ahead=_ahead(target),
    )


def _counted(node: Node) -> str:
    """The numbers in words where a limit has some, such as "4 of 4 connections of db-7 are in use."."""
    unit = UNITS.get(node.reason)
    if unit is None or not node.slots:
        return ""
    short = node.name.rpartition("/")[2]
    return f"{node.used} of {node.slots} {unit.format(short)} are in use."


def _ahead(target: WaitingTarget) -> int:
    return target.queue.items.index(target.ordinal)


def _told(reason: str | None, message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "waitReason": reason,
        "message": message or WAIT[reason or ""],
        "details": details,
    }
