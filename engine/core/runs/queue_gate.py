"""The gate between a planned step and its queued targets."""

from typing import Protocol

from engine.context.cluster_state import ClusterState
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run


class QueueGate(Protocol):
    """While it is closed, the plan of the run's step stays in memory and no task of it is reserved.

    The lifecycle asks again whenever the controller advances the run or reserves tasks.
    """

    def is_open(self, run: Run) -> bool: ...


class BeginGate:
    """Open when the run has begun or may begin."""

    def __init__(self, cluster_state: ClusterState, run_state: RunState) -> None:
        self._cluster_state = cluster_state
        self._run_state = run_state

    def is_open(self, run: Run) -> bool:
        if run.begun:
            return True
        others = (other for other in self._run_state.runs.values() if other is not run)
        if run.overlaps and any(other.job_id == run.job_id for other in others):
            return False
        return self._cluster_state.open or run.canceled
