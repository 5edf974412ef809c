"""Why a target waits, as the core knows it: the first resource that it lacks."""

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
        return _reply(
            None, "The engine does not hold this run: it has ended, or was started just now."
        )
    step = run.find(step_id)
    if step is None:
        return _reply("Overlap") if run.overlaps else _reply(None, "The run is not in this step.")
    if not step.is_queued:
        return _reply("Resolving")
    target = step.waiting.get(ordinal)
    if target is not None:
        return _waits(cluster_state, run_state, step, target)
    is_reserved = ordinal in run_state.invocations(step)
    return _reply("Reserved") if is_reserved else _reply(None, "It waits for nothing.")


def _waits(
    cluster_state: ClusterState, run_state: RunState, step: StepRun, target: WaitingTarget
) -> dict[str, Any]:
    withheld = _withheld(cluster_state, run_state, step, target)
    if withheld is not None:
        return _reply(withheld)
    if target.due is not None:
        return _reply(
            None, "Its pause has just ended.", notBefore=target.due
        )  # the rows tell the cause
    if target.ordinal not in target.queue.items:
        return _reply(None, "Its deadline has passed.")  # the database ends it in the next round
    full = run_state.policy.why(target.queue)
    if full is None:
        return _reply(None, "It is about to be reserved.", ahead=_ahead(target))
    return _reply(
        full.reason,
        _usage(full),
        node=full.name,
        used=full.used,
        slots=full.slots,
        ahead=_ahead(target),
    )


def _withheld(
    cluster_state: ClusterState, run_state: RunState, step: StepRun, target: WaitingTarget
) -> str | None:
    """The reason why it may not start, whatever is free."""
    if not cluster_state.open:
        return "AccountPaused"
    if run_state.tree.is_paused(step.run.job_id):
        return "JobPaused"
    if step.previous is not None and not step.previous.may_start(target.ordinal):
        return "PreviousStep"
    return None


def _usage(node: Node) -> str:
    """Such as "4 of 4 connections of db-7 are in use."; empty where a limit has no number."""
    unit = UNITS.get(node.reason)
    if unit is None or not node.slots:
        return ""
    short = node.name.rpartition("/")[2]
    return f"{node.used} of {node.slots} {unit.format(short)} are in use."


def _ahead(target: WaitingTarget) -> int:
    return target.queue.items.index(target.ordinal)


def _reply(reason: str | None, message: str = "", **details: Any) -> dict[str, Any]:
    return {
        "waitReason": reason,
        "message": message or WAIT[reason or ""],
        "details": details,
    }
