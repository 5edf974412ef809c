"""The run that was planned last, once more: the next one to start is expected to be like it.

A core that has nothing to do asks what is new, and tells in the same statement what it would reserve if that were
another run of the same version. The database looks whether it is so, and nothing else is to be done: then the group and
the servers are as they were, and the snapshot of the last run is the new one's too.
"""

from dataclasses import dataclass, replace
from typing import Any

from engine.core.runs.execution_store import Batch
from engine.core.runs.planner import Draft
from engine.scheduling.runs import NOBODY, Run, StepRun

MOST = 100  # targets; whoever has more does not wait for a statement


@dataclass(frozen=True)
class Encore:
    like: Run
    draft: Draft  # of its first step

    @classmethod
    def of(cls, step: StepRun, draft: Draft) -> "Encore | None":
        """None: it can't be told beforehand."""
        first = step.plan is step.run.steps[0]
        if draft.version is None or not first or len(draft.columns[0]) > MOST:
            return None
        return cls(step.run, draft)

    def step(self) -> StepRun:
        """Of a run that nobody has started yet."""
        fresh: dict[str, Any] = {"reached": {}, "begun": False, "canceled": False, "step": None}
        run = replace(self.like, id=NOBODY, day=None, queued=False, rests_until=0.0, **fresh)
        step = run.step = StepRun(run, run.steps[0])
        return step

    def said(self, batch: Batch) -> tuple[Any, ...]:
        """As begin_encore_v1 takes it, behind the epoch."""
        like, draft = self.like, self.draft
        job = like.job_id, like.version, like.steps[0].step_id
        return (
            *job,
            draft.version,
            draft.snapshot_id,
            batch.hosts,
            batch.ordinals,
            batch.invocations,
        )
