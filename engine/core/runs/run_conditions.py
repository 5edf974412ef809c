"""Conditions of the run lifecycle's table. None of them changes anything."""

from engine.core.runs.attempts import RunAttempts
from engine.core.runs.planner import StepPlan
from engine.core.runs.queue_gate import QueueGate
from engine.core.runs.rollouts import Rollouts
from engine.scheduling.runs import FINISHED, Run, StepDefinition, StepRun


class RunConditions:
    def __init__(
        self,
        begin_gate: QueueGate,
        queue_gate: QueueGate,
        rollouts: Rollouts,
        attempts: RunAttempts,
    ) -> None:
        self._begin_gate = begin_gate
        self._queue_gate = queue_gate
        self._rollouts = rollouts
        self._attempts = attempts
        self.plans: dict[StepRun, StepPlan] = {}  # of steps that are planned and not yet queued

    def always(self, _: Run | StepRun) -> bool:
        return True

    def may_begin(self, run: Run) -> bool:
        return self._begin_gate.is_open(run)

    def may_enter_step(self, run: Run) -> bool:
        return self.may_begin(run) and self.has_next_step(run)

    def has_next_step(self, run: Run) -> bool:
        return next_step(run) is not None

    def chain_goes_on(self, run: Run) -> bool:
        """Targets of the last live step go on to the next one."""
        return run.next_of_chain() is not None

    def is_snapshotted(self, step: StepRun) -> bool:
        reached = step.run.reached.get(step.plan.step_id)
        return reached is not None and reached.snapshot_id is not None

    def is_canceled(self, step: StepRun) -> bool:
        return step.canceled

    def is_wanted(self, step: StepRun) -> bool:
        return not step.canceled

    def may_end_canceled(self, step: StepRun) -> bool:
        return step.canceled and _is_first(step)

    def may_end(self, step: StepRun) -> bool:
        run = step.run
        passes = run.attempt_rules is None or run.pass_ended or run.is_stopping
        return step.finished and _is_first(step) and not run.outdated and passes

    def pass_has_ended(self, run: Run) -> bool:
        return self._attempts.pass_has_ended(run)

    def attempt_is_due(self, run: Run) -> bool:
        return self._attempts.is_due(run)

    def is_aborted(self, step: StepRun) -> bool:
        """Targets wait that an operator does not want to start any more."""
        return bool(step.waiting) and step.run.aborted

    def has_skipped(self, step: StepRun) -> bool:
        """Targets wait that did not succeed in the step before."""
        return step.previous is not None and bool(step.previous.skipped)

    def has_decision(self, step: StepRun) -> bool:
        return self._rollouts.decision(step) is not None

    def may_write_apart(self, step: StepRun) -> bool:
        return self._is_apart(step) and self._queue_gate.is_open(step.run)

    def may_queue_small(self, step: StepRun) -> bool:
        return not self._is_apart(step) and self._queue_gate.is_open(step.run)

    def _is_apart(self, step: StepRun) -> bool:
        """No task can be reserved together with the plan: it is large, or its targets wait for the step before."""
        return self.plans[step].is_large or step.run.before(step.plan) is not None


def _is_first(step: StepRun) -> bool:
    """Steps of a chain end in their order."""
    return step.run.live[0] is step


def next_step(run: Run) -> StepDefinition | None:
    """The step to enter. Of a canceled run that is only a step that was entered before."""
    plan = None if run.canceled else run.next()
    reached = next((each for each in run.reached.values() if each.lifecycle not in FINISHED), None)
    if plan is None and reached is not None:
        plan = next(each for each in run.steps if each.step_id == reached.step_id)
    return plan
