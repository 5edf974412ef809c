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


def why(cluster_state: ClusterState, run_id: UUID, step_id: int, ordinal: int) -> dict[str, Any]:
    run_state = cluster_state.run_state
    run = run_state.runs.get(run_id) if run_state else None
    if run_state is None or run is None:
        return _results(
            None, "The engine does not hold this run: it is over, or was started just now."
        )
    step = run.step
    if step is None or step.plan.step_id != step_id:
        return _results("Overlap") if run.overlaps else _results(None, "Its step is not at work.")
    if not step.is_queued:
        return _results("Resolving")
    target = step.waiting.get(ordinal)
    if target is not None:
        return _waits(cluster_state, run_state, step, target)
    held = ordinal in run_state.held(step)
    return _results("Reserved") if held else _results(None, "It waits for nothing.")


def _waits(
    cluster_state: ClusterState, run_state: RunState, step: StepRun, target: WaitingTarget
) -> dict[str, Any]:
    if not cluster_state.open:
        return _results("AccountPaused")
    if run_state.tree.is_paused(step.run.job_id):
        return _results("JobPaused")
    if target.due is not None:
        return _results(
            None, "Its pause is just over.", notBefore=target.due
        )  # for what, the rows say
    if target.ordinal not in target.queue.items:
        return _results(None, "Its time is over.")  # and the database is being told so
    full = run_state.policy.why(target.queue)
    if full is None:
        return _results(None, "It is about to be reserved.", ahead=_ahead(target))
    return _results(
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


def _results(reason: str | None, message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "waitReason": reason,
        "message": message or WAIT[reason or ""],
        "details": details,
    }
