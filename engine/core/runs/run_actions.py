"""Actions of the run lifecycle's table.

An action writes to the database first and then changes the phase in memory.
"""

import contextlib
from collections.abc import Callable

import asyncpg
from msgspec.structs import replace

from engine.core.runs.attempts import RunAttempts
from engine.core.runs.cancellations import Cancellations
from engine.core.runs.execution_store import ExecutionStore, Q, ReservationBatch
from engine.core.runs.planner import BEGUN, Planner, StepPlan, snapshot_id
from engine.core.runs.queue_gate import QueueGate
from engine.core.runs.rollouts import Rollouts
from engine.core.runs.run_conditions import RunConditions, next_step
from engine.model.group_document import Document
from engine.process.exit_codes import Disagreement
from engine.process.metrics import CoreMetrics
from engine.scheduling.previous_targets import PreviousTargets
from engine.scheduling.rollout import StepRollout
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import FINISHED, ReachedStep, Run, StepDefinition, StepPhase, StepRun
from engine.targets.resolver import needs_listing
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.failpoints import reach

log = telemetry.get(__name__)

UNRESOLVED = "TargetsUnresolved"  # an end_reason
FAILURE_PAUSE = 5.0  # seconds before a run is advanced again after an unexpected error
LOAD_TIMEOUT = 120.0  # seconds to read the targets of a step; a fleet has a million at most


class RunActions(RunConditions):
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
        attempts: RunAttempts,
        wake: Callable[[Run], None],
        metrics: CoreMetrics,
    ) -> None:
        super().__init__(begin_gate, queue_gate, rollouts, attempts)
        self._clock = clock
        self._executions = executions
        self._planner = planner
        self._run_state = run_state
        self._cancellations = cancellations
        self._wake = wake
        self._metrics = metrics
        self.documents: dict[str, Document] = {}  # target groups by name, as they are right now

    # Beginning

    async def begin_run(self, run: Run) -> None:
        """Begins a run that has no step to enter."""
        self._apply_begin(run, await self._executions.value(Q.begin_run, run.id))

    async def enter_step(self, run: Run) -> None:
        _enter(run, next_step(run))

    async def enter_chain_step(self, run: Run) -> None:
        _enter(run, run.next_of_chain())

    def _apply_begin(self, run: Run, reply: str) -> bool:
        """Returns True when the run has begun; otherwise it has no current step any more, or has ended."""
        run.begun = reply == BEGUN
        if reply in {"Queued", "Paused"}:
            run.overlaps = reply == "Queued"
            self._leave_steps(run)
        elif not run.begun:
            if reply in FINISHED:
                self._metrics.run_ended(run.job_name, reply)
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

    async def plan(self, step: StepRun) -> None:
        """Plans at once if no query is needed; otherwise in the background, since servers may be slow."""
        document = self.documents.get(step.plan.target_group_name or "")
        if document is not None and not _asks_servers(step.run, document):
            with contextlib.suppress(Fault):
                self._set_plan(step, await self._planner.draft(step.run, step.plan, document))
                return
        step.phase = StepPhase.RESOLVING

    async def resolve(self, step: StepRun) -> None:
        document = await self._planner.read(step.plan.target_group_name)
        if _asks_servers(step.run, document) and not await self._record_entry(step):
            return
        self._set_plan(step, await self._planner.draft(step.run, step.plan, document))

    def _set_plan(self, step: StepRun, plan: StepPlan) -> None:
        self.plans[step] = plan
        step.phase = StepPhase.PLANNED

    async def discard_plan(self, step: StepRun) -> None:
        del self.plans[step]
        step.phase = StepPhase.ENTERED

    async def fail_step(self, step: StepRun, fault: Fault) -> None:
        run, id = step.run, step.plan.step_id
        log.info("step has no targets", run=run.id, step=id, why=fault.message)
        if await self._record_entry(step):
            await self._executions.value(Q.end_step, run.id, id, UNRESOLVED, fault.message)
            self._apply_step_end(step, "Failed")

    # Queueing

    async def write_apart(self, step: StepRun) -> None:
        """Records the entry first, so that a cancellation need not wait until the plan is written."""
        plan, in_chain = self.plans[step], step.run.before(step.plan) is not None
        if in_chain:
            await reach("core.before_chain_step")
        if not await self._record_entry(step):
            return
        await reach("core.before_plan")
        reply = await self._planner.write(plan)
        await reach("core.planned")
        if in_chain:  # which targets may start is read together with them
            self.plans.pop(step)
            _mark_planned(step)
            step.phase = StepPhase.ENTERED
        else:
            self._load(step, plan)
            await self._apply_plan(step, *reply)

    async def load_plan(self, step: StepRun) -> None:
        self._load(step, self.plans[step])
        step.phase = StepPhase.LOADED

    async def write_plan(self, step: StepRun, batch: ReservationBatch) -> None:
        """Writes the plan and the batch of tasks in one transaction."""
        plan = self.plans.pop(step)
        await reach("core.before_plan")
        try:
            rows = await self._executions.rows(Q.plan_and_reserve, *plan.arguments, *batch.columns)
        except asyncpg.PostgresError:  # the database refused this plan: the other runs go on
            log.exception("step could not be planned", run=step.run.id)
            self._release(batch)
            self.abandon_step(step.run)
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
            await self.load_targets(step)
            return
        for ordinal in skipped:
            self._run_state.remove(step, ordinal, None)
        self._queued(step)

    def _load(self, step: StepRun, plan: StepPlan) -> None:
        step.rollout = StepRollout(plan.rules)
        for row in plan.rows():
            self._run_state.load(step, row)

    async def load_targets(self, step: StepRun) -> None:
        """Loads the targets of a step that was planned before. A failure that is recorded meanwhile counts twice
        rather than not at all.
        """
        key = (step.run.day, step.run.id, step.plan.step_id)
        rows = await self._executions.rows(Q.live_targets, *key, limit=LOAD_TIMEOUT)
        await self._rollouts.load(step)
        await self._load_previous(step)
        for row in rows:
            self._run_state.load(step, dict(row))
        self._run_state.follow(step)
        self._queued(step)

    async def _load_previous(self, step: StepRun) -> None:
        """Reads what the targets of a chain's later step wait for."""
        run, plan = step.run, step.run.before(step.plan)
        if plan is None:
            return
        rows = await self._executions.rows(
            Q.previous_targets, run.id, step.plan.step_id, plan.step_id, limit=LOAD_TIMEOUT
        )
        ended = None if run.find(plan.step_id) else run.reached[plan.step_id].lifecycle
        step.previous = PreviousTargets.of(
            map(dict, rows), continues=plan.continues, ended=ended, rerun=run.chosen == "rerun"
        )

    def _queued(self, step: StepRun) -> None:
        self.plans.pop(step, None)
        _mark_planned(step)
        step.phase = StepPhase.QUEUED
        self._cancellations.step_queued(step)
        if step.finished:
            self._wake(step.run)

    # Rollouts and attempts

    async def apply_decision(self, step: StepRun) -> None:
        await self._rollouts.apply(step)

    async def abort_step(self, step: StepRun) -> None:
        await self._rollouts.abort(step)

    async def end_pass(self, run: Run) -> None:
        await self._attempts.end_pass(run)

    async def begin_attempt(self, run: Run) -> None:
        await self._attempts.begin(run)

    # Chains

    async def skip_targets(self, step: StepRun) -> None:
        """Ends the targets that did not succeed in the step before."""
        assert step.previous is not None
        ordinals = sorted(step.previous.skipped)
        await reach("core.before_skip")
        key = (step.run.id, step.plan.step_id, ordinals)
        await self._executions.rows(Q.skip_targets, *key, limit=LOAD_TIMEOUT)
        for ordinal in ordinals:
            self._run_state.remove(step, ordinal, lifecycle="Skipped")
        await reach("core.skipped")

    # Ending

    async def end_step(self, step: StepRun) -> None:
        """Ends a finished step, or one that was cancelled before it was planned."""
        run, id = step.run, step.plan.step_id
        if id not in run.reached and not await self._record_entry(step):
            return
        await reach("core.before_step_end")
        is_last = run.live == [step] and (run.canceled or run.aborted or step.plan is run.steps[-1])
        if is_last:
            await reach("core.before_run_end")
            ((lifecycle, run_lifecycle),) = await self._executions.rows(Q.end_last_step, run.id, id)
        else:
            lifecycle = await self._executions.value(Q.end_step, run.id, id, None, None)
        await reach("core.step_ended")
        if lifecycle is None and step.is_queued:  # a target was retried
            run.outdated = True
            return
        if lifecycle is None:  # its targets were planned while it was being cancelled
            await self.load_targets(step)
            return
        self._apply_step_end(step, lifecycle)
        if is_last:
            self._apply_run_end(run, run_lifecycle)

    async def end_run(self, run: Run) -> None:
        await reach("core.before_run_end")
        self._apply_run_end(run, await self._executions.value(Q.end_run, run.id))

    def abandon_step(self, run: Run) -> None:
        """After an unexpected error: a step that is not queued is entered again after a pause."""
        for step in [step for step in run.live if not step.is_queued]:
            self._run_state.remove_waiting(step)
            self._leave_step(step)
        run.retry_at = self._clock.monotonic() + FAILURE_PAUSE

    def _leave_steps(self, run: Run) -> None:
        for step in list(run.live):
            self._leave_step(step)

    def _leave_step(self, step: StepRun) -> None:
        self.plans.pop(step, None)
        step.run.live.remove(step)
        step.phase = StepPhase.LEFT

    def _apply_step_end(self, step: StepRun, lifecycle: str) -> None:
        run, id = step.run, step.plan.step_id
        self._cancellations.step_ended(step)
        self._run_state.step_ended(step, lifecycle)
        run.reached[id] = replace(run.reached[id], lifecycle=lifecycle, aborted=step.aborted)
        self._leave_step(step)

    def _apply_run_end(self, run: Run, lifecycle: str | None) -> None:
        if lifecycle is None:
            raise Disagreement(f"run {run.id} has steps that live")
        self._metrics.run_ended(run.job_name, lifecycle)
        self._remove(run)

    def forget_run(self, run: Run) -> None:
        """Its tasks go on at their hosts; the next updates contain it again."""
        for step in run.live:
            for invocation in self._run_state.invocations(step).values():
                self._run_state.release(invocation)
            self._run_state.remove_waiting(step)
        self._remove(run)

    def _remove(self, run: Run) -> None:
        """Removes an ended run, and wakes the runs of its job that waited for its end."""
        self._run_state.remove_run(run)
        self._leave_steps(run)
        run.ended = True
        for other in self._run_state.runs.values():
            if other.job_id == run.job_id:
                other.overlaps = False
                self._wake(other)


def _enter(run: Run, plan: StepDefinition | None) -> None:
    assert plan is not None
    reached = run.reached.get(plan.step_id)
    run.step_entered(plan)
    canceled = run.canceled or (reached is not None and reached.cancel_requested)
    run.live.append(StepRun(run, plan, canceled=canceled))


def _asks_servers(run: Run, document: Document) -> bool:
    """Targets that a caller named may be whole servers, also in a rerun."""
    return run.chosen in {"caller", "rerun"} or needs_listing(document)


def _mark_planned(step: StepRun) -> None:
    run, id = step.run, step.plan.step_id
    run.reached[id] = replace(run.reached[id], snapshot_id=snapshot_id(run, step.plan))
