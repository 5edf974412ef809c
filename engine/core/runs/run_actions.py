"""Conditions and actions of the run lifecycle's table.

An action writes to the database first and then changes the phase in memory.
"""

import contextlib
from collections.abc import Callable

import asyncpg

from engine.core.runs.cancellations import Cancellations
from engine.core.runs.execution_store import ExecutionStore, Q, ReservationBatch
from engine.core.runs.planner import BEGUN, Planner, StepPlan, reason_of, refuse
from engine.core.runs.queue_gate import QueueGate
from engine.core.runs.rollouts import Rollouts
from engine.model.group_document import Document
from engine.process.exit_codes import Disagreement
from engine.scheduling.rollout import StepRollout
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import FINISHED, ReachedStep, Run, RunPhase, StepDefinition, StepRun
from engine.targets.resolver import needs_listing
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.failpoints import reach

log = telemetry.get(__name__)

FAILURE_PAUSE = 5.0  # seconds before a run is advanced again after an unexpected error
LOAD_TIMEOUT = 120.0  # seconds to read the targets of a step; a fleet has a million at most


class RunActions:
    def __init__(
        self,
        *,
        clock: Clock,
        executions: ExecutionStore,
        planner: Planner,
        run_state: RunState,
        cancellations: Cancellations,
        begin_gate: QueueGate,
        queue_gate: QueueGate,
        rollouts: Rollouts,
        wake: Callable[[Run], None],
    ) -> None:
        self._clock = clock
        self._executions = executions
        self._planner = planner
        self._run_state = run_state
        self._cancellations = cancellations
        self._begin_gate = begin_gate
        self._queue_gate = queue_gate
        self._rollouts = rollouts
        self._wake = wake
        self.documents: dict[str, Document] = {}  # target groups by name, as they are right now
        self.plans: dict[StepRun, StepPlan] = {}  # of steps that are planned and not yet queued

    # Conditions

    def always(self, _: Run) -> bool:
        return True

    def may_begin(self, run: Run) -> bool:
        return self._begin_gate.is_open(run)

    def may_enter_step(self, run: Run) -> bool:
        return self.may_begin(run) and self.has_next_step(run)

    def has_next_step(self, run: Run) -> bool:
        return _next_step(run) is not None

    def is_snapshotted(self, run: Run) -> bool:
        reached = run.reached.get(_current(run).plan.step_id)
        return reached is not None and reached.snapshot_id is not None

    def is_canceled(self, run: Run) -> bool:
        return _current(run).canceled

    def is_step_finished(self, run: Run) -> bool:
        return _current(run).finished

    def is_aborted(self, run: Run) -> bool:
        """Targets wait that an operator does not want to start any more."""
        step = _current(run)
        return step.aborted and bool(step.waiting)

    def has_decision(self, run: Run) -> bool:
        return self._rollouts.decision(_current(run)) is not None

    def may_queue_large(self, run: Run) -> bool:
        return self.plans[_current(run)].is_large and self._queue_gate.is_open(run)

    def may_queue_small(self, run: Run) -> bool:
        return not self.plans[_current(run)].is_large and self._queue_gate.is_open(run)

    # Beginning

    async def begin_run(self, run: Run) -> None:
        """Begins a run that has no step to enter."""
        self._apply_begin(run, await self._executions.value(Q.begin_run, run.id))

    async def enter_step(self, run: Run) -> None:
        plan = _next_step(run)
        assert plan is not None
        reached = run.reached.get(plan.step_id)
        canceled = run.canceled or (reached is not None and reached.cancel_requested)
        run.step = StepRun(run, plan, canceled=canceled)

    def _apply_begin(self, run: Run, reply: str) -> bool:
        """Returns True when the run has begun; otherwise it has no current step any more, or has ended."""
        run.begun = reply == BEGUN
        if reply in {"Queued", "Paused"}:
            run.overlaps = reply == "Queued"
            self._leave_step(run)
        elif not run.begun:
            self._remove(run)
        return run.begun

    def _apply_entry(self, step: StepRun, reply: str) -> bool:
        if not self._apply_begin(step.run, reply):
            return False
        id = step.plan.step_id
        step.run.reached.setdefault(id, ReachedStep(id, "Created"))
        return True

    async def _record_entry(self, step: StepRun) -> bool:
        """Writes that the run has begun and entered the step; False when it may not begin."""
        return self._apply_entry(step, await self._planner.reach(step.run, step.plan))

    # Planning

    async def plan(self, run: Run) -> None:
        """Plans at once if no query is needed; otherwise in the background, since servers may be slow."""
        step = _current(run)
        document = self.documents.get(step.plan.target_group_name or "")
        if document is not None and not _asks_servers(run, document):
            with contextlib.suppress(Fault):
                self._set_plan(step, await self._planner.draft(run, step.plan, document))
                return
        step.phase = RunPhase.RESOLVING

    async def resolve(self, run: Run) -> None:
        step = _current(run)
        refuse(step.plan)
        document = await self._planner.read(step.plan.target_group_name)
        if _asks_servers(run, document) and not await self._record_entry(step):
            return
        self._set_plan(step, await self._planner.draft(run, step.plan, document))

    def _set_plan(self, step: StepRun, plan: StepPlan) -> None:
        self.plans[step] = plan
        step.phase = RunPhase.PLANNED

    async def discard_plan(self, run: Run) -> None:
        step = _current(run)
        del self.plans[step]
        step.phase = RunPhase.ENTERED

    async def fail_step(self, step: StepRun, fault: Fault) -> None:
        run, id = step.run, step.plan.step_id
        log.info("step has no targets", run=run.id, step=id, why=fault.message)
        if await self._record_entry(step):
            await self._executions.value(Q.end_step, run.id, id, reason_of(fault), fault.message)
            self._apply_step_end(step, "Failed")

    # Queueing

    async def write_large_plan(self, run: Run) -> None:
        """Records the entry first, so that a cancellation need not wait until the plan is written."""
        step = _current(run)
        plan = self.plans[step]
        if await self._record_entry(step):
            await reach("core.before_plan")
            reply = await self._planner.write(plan)
            await reach("core.planned")
            self._load(step, plan)
            await self._apply_plan(step, *reply)

    async def load_plan(self, run: Run) -> None:
        step = _current(run)
        self._load(step, self.plans[step])
        step.phase = RunPhase.LOADED

    async def write_plan(self, run: Run, batch: ReservationBatch) -> None:
        """Writes the plan and the batch of tasks in one transaction."""
        step = _current(run)
        plan = self.plans.pop(step)
        await reach("core.before_plan")
        try:
            rows = await self._executions.rows(Q.plan_and_reserve, *plan.arguments, *batch.columns)
        except asyncpg.PostgresError:  # the database refused this plan: the other runs go on
            log.exception("step could not be planned", run=run.id)
            self._release(batch)
            self.abandon_step(run)
            return
        await reach("core.planned")
        ((begun, skipped, _),) = rows
        if begun != BEGUN or skipped != []:
            self._release(batch)
        await self._apply_plan(step, begun, skipped)

    def _release(self, batch: ReservationBatch) -> None:
        """Releases a batch that the database did not reserve."""
        for invocation in batch.invocations:
            self._run_state.release(invocation)

    async def _apply_plan(self, step: StepRun, begun: str, skipped: list[int] | None) -> None:
        """The step is loaded as if all of its targets waited; applies what the database replied."""
        if not self._apply_entry(step, begun) or skipped is None:
            self._run_state.remove_waiting(step)
        if not step.run.begun:
            return
        if skipped is None:  # it was planned before, and its tasks may have run
            await self.load_targets(step.run)
            return
        for ordinal in skipped:
            self._run_state.remove(step, ordinal, None)
        self._queued(step)

    def _load(self, step: StepRun, plan: StepPlan) -> None:
        step.rollout = StepRollout(plan.rules)
        for row in plan.rows():
            self._run_state.load(step, row)

    async def load_targets(self, run: Run) -> None:
        """Loads the targets of a step that was planned before."""
        step = _current(run)
        await self._rollouts.load(step)
        key = (run.day, run.id, step.plan.step_id)
        for row in await self._executions.rows(Q.live_targets, *key, limit=LOAD_TIMEOUT):
            self._run_state.load(step, dict(row))
        self._queued(step)

    def _queued(self, step: StepRun) -> None:
        self.plans.pop(step, None)
        step.phase = RunPhase.QUEUED
        self._cancellations.step_queued(step)
        if step.finished:
            self._wake(step.run)

    # Rollouts

    async def apply_decision(self, run: Run) -> None:
        await self._rollouts.apply(_current(run))

    async def abort_step(self, run: Run) -> None:
        await self._rollouts.abort(_current(run))

    # Ending

    async def end_step(self, run: Run) -> None:
        """Ends a finished step, or one that was cancelled before it was planned."""
        step = _current(run)
        id = step.plan.step_id
        if id not in run.reached and not await self._record_entry(step):
            return
        await reach("core.before_step_end")
        is_last = run.canceled or step.aborted or step.plan is run.steps[-1]
        if is_last:
            await reach("core.before_run_end")
            ((lifecycle, run_lifecycle),) = await self._executions.rows(Q.end_last_step, run.id, id)
        else:
            lifecycle = await self._executions.value(Q.end_step, run.id, id, None, None)
        await reach("core.step_ended")
        if lifecycle is None and step.is_queued:
            raise Disagreement(f"step {id} of run {run.id} has targets that live")
        if lifecycle is None:  # its targets were planned while it was being cancelled
            await self.load_targets(run)
            return
        self._apply_step_end(step, lifecycle)
        if is_last:
            self._apply_run_end(run, run_lifecycle)

    async def end_run(self, run: Run) -> None:
        await reach("core.before_run_end")
        self._apply_run_end(run, await self._executions.value(Q.end_run, run.id))

    def abandon_step(self, run: Run) -> None:
        """After an unexpected error: a step that is not queued is entered again after a pause."""
        if run.step is not None and not run.step.is_queued:
            self._run_state.remove_waiting(run.step)
            self._leave_step(run)
        run.retry_at = self._clock.monotonic() + FAILURE_PAUSE

    def _leave_step(self, run: Run) -> None:
        if run.step is not None:
            self.plans.pop(run.step, None)
            run.step = None

    def _apply_step_end(self, step: StepRun, lifecycle: str) -> None:
        run, id = step.run, step.plan.step_id
        self._cancellations.step_ended(step)
        self._run_state.policy.drop(step.queues.values())
        run.reached[id] = ReachedStep(id, lifecycle, aborted=step.aborted)
        self._leave_step(run)

    def _apply_run_end(self, run: Run, lifecycle: str | None) -> None:
        if lifecycle is None:
            raise Disagreement(f"run {run.id} has steps that live")
        self._remove(run)

    def _remove(self, run: Run) -> None:
        """Removes an ended run, and wakes the runs of its job that waited for its end."""
        self._run_state.remove_run(run)
        self._leave_step(run)
        run.ended = True
        for other in self._run_state.runs.values():
            if other.job_id == run.job_id:
                other.overlaps = False
                self._wake(other)


def _current(run: Run) -> StepRun:
    assert run.step is not None
    return run.step


def _next_step(run: Run) -> StepDefinition | None:
    """The step to enter. Of a canceled run that is only a step that was entered before."""
    plan = None if run.canceled else run.next()
    reached = next((each for each in run.reached.values() if each.lifecycle not in FINISHED), None)
    if plan is None and reached is not None:
        plan = next(each for each in run.steps if each.step_id == reached.step_id)
    return plan


def _asks_servers(run: Run, document: Document) -> bool:
    """Targets that the caller named may be whole servers."""
    return run.chosen == "caller" or needs_listing(document)
