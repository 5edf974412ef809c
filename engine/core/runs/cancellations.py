"""Cancellations of runs, steps and targets: signalled to the running tasks, closed when those have ended."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from engine.core.runs.execution_store import ExecutionStore, Q
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import CANCEL_METHODS, Run, StepRun, strongest
from muster.core.failpoints import reach

CANCEL_TIMEOUT = 60.0  # seconds to cancel a step; it may have a million targets


@dataclass(eq=False)
class Cancellation:
    id: UUID
    run: UUID
    step_id: int | None  # None: the whole run
    ordinal: int | None  # None: the whole step
    signalled: bool = False  # to the live steps
    needed: str = CANCEL_METHODS[0]

    def concerns(self, step: StepRun) -> bool:
        return self.run == step.run.id and self.step_id in {None, step.plan.step_id}

    def add_methods(self, step: StepRun) -> None:
        """Records the strongest cancel method that the step needed so far."""
        self.needed = strongest((self.needed, step.needed(self.ordinal)))


class Cancellations:
    def __init__(
        self, executions: ExecutionStore, stop_planning: Callable[[StepRun], None]
    ) -> None:
        self._executions = executions
        self._stop_planning = stop_planning  # cancels its background task
        self._open: dict[UUID, Cancellation] = {}

    def add(self, cancellations: Iterable[Cancellation]) -> None:
        """Adds those that are open."""
        for cancellation in cancellations:
            self._open.setdefault(cancellation.id, cancellation)

    async def signal(self, run_state: RunState) -> list[Run]:
        """Signals new cancellations; returns the runs that they concern."""
        runs = []
        for cancellation in [
            cancellation for cancellation in self._open.values() if not cancellation.signalled
        ]:
            run = run_state.runs.get(cancellation.run)
            if run is not None:
                runs.append(run)
                run.canceled = run.canceled or cancellation.step_id is None
                for step in list(run.live):
                    if cancellation.concerns(step):
                        await self._stop(run_state, step, cancellation)
            cancellation.signalled = True
        return runs

    def step_queued(self, step: StepRun) -> None:
        """The step has targets now: cancellations that concern it are signalled to them as well."""
        for cancellation in self._open.values():
            cancellation.signalled = cancellation.signalled and not cancellation.concerns(step)

    def step_ended(self, step: StepRun) -> None:
        for cancellation in self._open.values():
            if cancellation.concerns(step):
                cancellation.add_methods(step)

    async def close(self, run_state: RunState) -> None:
        for cancellation in list(self._open.values()):
            run = run_state.runs.get(cancellation.run)
            if run is None or _is_done(run_state, run, cancellation):
                for step in run.live if run is not None else ():
                    if cancellation.concerns(step):
                        cancellation.add_methods(step)
                await self._executions.rows(
                    Q.close_cancellation, cancellation.id, cancellation.needed
                )
                del self._open[cancellation.id]

    async def _stop(self, run_state: RunState, step: StepRun, cancellation: Cancellation) -> None:
        step.canceled = step.canceled or cancellation.ordinal is None
        if step.canceled:
            self._stop_planning(step)
        if not step.is_queued:
            return
        await reach("core.before_cancel")
        ordinals = None if cancellation.ordinal is None else [cancellation.ordinal]
        key = (step.run.id, step.plan.step_id, ordinals)
        rows = await self._executions.rows(Q.cancel_targets, *key, limit=CANCEL_TIMEOUT)
        await reach("core.canceled")
        invocations = run_state.invocations(step)
        for row in rows:
            if row["ended"]:
                run_state.remove(step, row["ordinal"], invocations.get(row["ordinal"]))
        running = [(row["host_id"], row["invocation_id"]) for row in rows if not row["ended"]]
        if running:
            await self._executions.cancel(running)


def _is_done(run_state: RunState, run: Run, cancellation: Cancellation) -> bool:
    """Nothing that the cancellation concerns is running."""
    if cancellation.step_id is None:
        return False
    step = run.find(cancellation.step_id)
    if step is None:
        return True
    if cancellation.ordinal is None:
        return step.finished  # it ends after the steps before it
    if cancellation.ordinal in step.waiting:
        return False
    return cancellation.ordinal not in run_state.invocations(step)
