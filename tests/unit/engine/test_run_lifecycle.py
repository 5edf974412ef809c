"""The table of a run's life: every phase leads on, and the gate keeps planned steps out of the queues."""

from types import SimpleNamespace
from uuid import uuid4

import pytest

from engine.core.runs.attempts import RunAttempts
from engine.core.runs.queue_gate import BeginGate
from engine.core.runs.run_actions import RunActions
from engine.core.runs.run_lifecycle import RUN_MOVES, STEP_MOVES, By
from engine.scheduling.run_attempts import RunAttemptRules
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run, RunPhase, StepDefinition, StepPhase, StepRun

STEP = StepDefinition(1, "step", uuid4(), "group", 60)
NOW = 100.0  # by the database's clock


def a_run(state: RunState, *, begun=False, canceled=False, job=None) -> Run:
    run = Run(uuid4(), job or uuid4(), "job", 1, None, (STEP,), {}, begun=begun, canceled=canceled)
    state.runs[run.id] = run
    return run


def a_gate(state: RunState, *, open=True) -> BeginGate:
    return BeginGate(SimpleNamespace(open=open), state)


class Closed:
    def is_open(self, run):
        return False


def actions(state: RunState, *, queue_gate=None) -> RunActions:
    gate = a_gate(state)
    others = dict.fromkeys(("clock", "executions", "planner", "cancellations", "wake", "metrics"))
    return RunActions(
        **others,
        rollouts=SimpleNamespace(decision=lambda step: None),
        attempts=RunAttempts(None, lambda: NOW),
        run_state=state,
        begin_gate=gate,
        queue_gate=queue_gate or gate,
    )


def planned(state: RunState, do: RunActions, *, is_large: bool) -> StepRun:
    run = a_run(state)
    step = StepRun(run, STEP, phase=StepPhase.PLANNED)
    run.live.append(step)
    do.plans[step] = SimpleNamespace(is_large=is_large)
    return step


def next_move(do: RunActions, subject: Run | StepRun):
    moves = RUN_MOVES if isinstance(subject, Run) else STEP_MOVES
    fitting = (
        move for move in moves if move.phase is subject.phase and move.condition(do, subject)
    )
    return next(fitting, None)


def test_every_phase_of_a_step_leads_to_the_end_and_is_reached():
    for phase in StepPhase:
        reached = {phase}
        while more := {p for m in STEP_MOVES if m.phase in reached for p in m.next} - reached:
            reached |= more
        assert StepPhase.LEFT in reached
    assert {phase for move in STEP_MOVES for phase in move.next} == set(StepPhase)
    assert StepPhase.LEFT not in {move.phase for move in STEP_MOVES}


def test_every_phase_of_a_run_is_reached_and_an_ended_run_does_not_move():
    assert {phase for move in RUN_MOVES for phase in move.next} == set(RunPhase)
    assert RunPhase.ENDED not in {move.phase for move in RUN_MOVES}


def test_targets_are_queued_only_from_a_snapshot_a_cancelled_entry_or_a_plan():
    sources = {move.phase for move in STEP_MOVES if StepPhase.QUEUED in move.next}
    assert sources - {StepPhase.QUEUED} == {StepPhase.ENTERED, StepPhase.PLANNED, StepPhase.LOADED}


@pytest.mark.parametrize(
    ("is_large", "by"), [(False, By.RESERVE), (True, By.BACKGROUND)], ids=["small", "large"]
)
def test_an_open_gate_lets_a_plan_be_queued(is_large, by):
    state = RunState(4)
    do = actions(state)
    move = next_move(do, planned(state, do, is_large=is_large))
    assert move is not None
    assert move.by is by


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_a_closed_gate_keeps_a_plan_of_any_size_out_of_the_queues(is_large):
    state = RunState(4)
    do = actions(state, queue_gate=Closed())
    assert next_move(do, planned(state, do, is_large=is_large)) is None


async def test_a_step_canceled_at_a_closed_gate_loses_its_plan():
    state = RunState(4)
    do = actions(state, queue_gate=Closed())
    step = planned(state, do, is_large=False)
    step.canceled = True
    await next_move(do, step).action(do, step)
    assert (step.phase, do.plans) == (StepPhase.ENTERED, {})
    assert next_move(do, step).action is RunActions.end_step


def test_a_run_may_begin_unless_the_account_is_paused():
    state = RunState(4)
    run = a_run(state)
    assert a_gate(state).is_open(run)
    assert not a_gate(state, open=False).is_open(run)


def test_a_canceled_run_begins_in_a_paused_account_so_that_it_can_end():
    state = RunState(4)
    assert a_gate(state, open=False).is_open(a_run(state, canceled=True))


def test_a_begun_run_goes_on_in_a_paused_account():
    state = RunState(4)
    assert a_gate(state, open=False).is_open(a_run(state, begun=True))


def test_a_run_that_overlaps_waits_for_the_other_runs_of_its_job():
    state = RunState(4)
    older = a_run(state, begun=True)
    run = a_run(state, job=older.job_id)
    run.overlaps = True
    assert not a_gate(state).is_open(run)
    state.remove_run(older)
    assert a_gate(state).is_open(run)


async def test_a_run_is_entered_at_its_first_unfinished_step():
    state = RunState(4)
    do, run = actions(state), a_run(state)
    await next_move(do, run).action(do, run)
    (step,) = run.live
    assert (run.phase, step.phase, step.plan) == (RunPhase.IN_STEPS, StepPhase.ENTERED, STEP)


def test_a_begun_run_without_a_step_left_ends():
    state = RunState(4)
    do, run = actions(state), a_run(state, begun=True, canceled=True)
    assert run.phase is RunPhase.BETWEEN_STEPS
    assert next_move(do, run).action is RunActions.end_run


def in_its_step(state: RunState, **more) -> tuple[Run, StepRun]:
    """A run with attempts whose only step has no unfinished target."""
    run = a_run(state, begun=True)
    run.attempt_rules = RunAttemptRules()
    step = StepRun(run, STEP, phase=StepPhase.QUEUED)
    run.live.append(step)
    for name, value in more.items():
        setattr(run, name, value)
    return run, step


def test_a_step_of_a_run_with_attempts_ends_only_after_the_decision_about_its_pass():
    state = RunState(4)
    do = actions(state)
    run, step = in_its_step(state)
    assert next_move(do, run).action is RunActions.end_pass
    assert next_move(do, step) is None

    run.pass_ended = True
    assert next_move(do, run) is None
    assert next_move(do, step).action is RunActions.end_step


def test_a_pass_has_not_ended_while_a_target_waits_or_runs():
    state = RunState(4)
    do = actions(state)
    run, step = in_its_step(state)
    step.busy = 1
    assert next_move(do, run) is None


@pytest.mark.parametrize(("due", "begins"), [(NOW - 1, True), (NOW, True), (NOW + 1, False)])
def test_the_next_attempt_begins_when_it_is_due(due, begins):
    state = RunState(4)
    do = actions(state)
    run, step = in_its_step(state, next_attempt=due, pass_ended=False)
    assert run.phase is RunPhase.BETWEEN_ATTEMPTS
    move = next_move(do, run)
    assert (move is not None and move.action is RunActions.begin_attempt) is begins
    assert next_move(do, step) is None


def test_a_run_that_is_cancelled_between_two_attempts_ends_its_step():
    state = RunState(4)
    do = actions(state)
    run, step = in_its_step(state, next_attempt=NOW - 1, canceled=True)
    assert next_move(do, run) is None
    assert next_move(do, step).action is RunActions.end_step


def test_a_run_that_is_loaded_again_makes_no_move_before():
    state = RunState(4)
    do = actions(state)
    run, step = in_its_step(state, outdated=True)
    assert (next_move(do, run), next_move(do, step)) == (None, None)
    run.next_attempt = NOW - 1
    assert next_move(do, run) is None
