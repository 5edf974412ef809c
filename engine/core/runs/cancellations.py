"""Cancellations: who wanted what to stop. Each is signalled to what it concerns, and closed when that is over."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from engine.core.runs.execution_store import ExecutionStore, Q
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import NEEDS, Run, StepRun, strongest
from muster.core.failpoints import reach

LIMIT = 60.0  # seconds to cancel a step; it may have a million targets


@dataclass(eq=False)
class Cancellation:
    id: UUID
    run: UUID
    step_id: int | None  # None: the whole run
    ordinal: int | None  # None: the whole step
    signalled: bool = False  # to the step that is at work
    needed: str = NEEDS[0]

    def concerns(self, step: StepRun) -> bool:
        return self.run == step.run.id and self.step_id in {None, step.plan.step_id}

    def note(self, step: StepRun) -> None:
        """What it took so far."""
        self.needed = strongest((self.needed, step.needed(self.ordinal)))


class Cancellations:
    def __init__(self, executions: ExecutionStore, break_off: Callable[[StepRun], None]) -> None:
        self._executions = executions
        self._break_off = break_off  # its targets are being looked up
        self._open: dict[UUID, Cancellation] = {}

    def see(self, orders: Iterable[Cancellation]) -> None:
        """Those that are open."""
        for order in orders:
            self._open.setdefault(order.id, order)

    async def signal(self, run_state: RunState) -> list[Run]:
        """The runs that somebody wants to stop, or part of them."""
        stirred = []
        for order in [order for order in self._open.values() if not order.signalled]:
            run = run_state.runs.get(order.run)
            if run is not None:
                stirred.append(run)
                run.canceled = run.canceled or order.step_id is None
                if run.step is not None and order.concerns(run.step):
                    await self._stop(run_state, run.step, order)
            order.signalled = True
        return stirred

    def reached(self, step: StepRun) -> None:
        """The step has targets now: what concerns it is signalled to them as well."""
        for order in self._open.values():
            order.signalled = order.signalled and not order.concerns(step)

    def over(self, step: StepRun) -> None:
        for order in self._open.values():
            if order.concerns(step):
                order.note(step)

    async def close(self, run_state: RunState) -> None:
        for order in list(self._open.values()):
            run = run_state.runs.get(order.run)
            if run is None or _obeyed(run_state, run, order):
                if run is not None and run.step is not None and order.concerns(run.step):
                    order.note(run.step)
                await self._executions.rows(Q.close_cancellation, order.id, order.needed)
                del self._open[order.id]

    async def _stop(self, run_state: RunState, step: StepRun, order: Cancellation) -> None:
        step.canceled = step.canceled or order.ordinal is None
        if step.canceled:
            self._break_off(step)
        if not step.is_queued:
            return
        await reach("core.before_cancel")
        ordinals = None if order.ordinal is None else [order.ordinal]
        which = (step.run.id, step.plan.step_id, ordinals)
        rows = await self._executions.rows(Q.cancel_targets, *which, limit=LIMIT)
        await reach("core.canceled")
        held = run_state.held(step)
        for row in rows:
            if row["ended"]:
                run_state.remove(step, row["ordinal"], held.get(row["ordinal"]))
        running = [(row["host_id"], row["invocation_id"]) for row in rows if not row["ended"]]
        if running:
            await self._executions.cancel(running)


def _obeyed(run_state: RunState, run: Run, order: Cancellation) -> bool:
    """Nothing that it concerns goes on."""
    step = run.step
    if order.step_id is None:
        return False
    if step is None or step.plan.step_id != order.step_id:
        return True
    if order.ordinal is None or order.ordinal in step.waiting:
        return False
    return order.ordinal not in run_state.held(step)
