"""Steps with advance perTarget: what a target waits for, which step of a run follows, and when a chain is halted."""

from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from engine.scheduling.previous_targets import PreviousTargets
from engine.scheduling.rollout import Halt, OpenWave, RolloutRules, StepRollout, decide
from engine.scheduling.runs import FINISHED, ReachedStep, Run, StepDefinition, StepPhase, StepRun
from tests.unit.engine.test_run_state import a_state, a_step, over, reserve

LIFECYCLES = st.sampled_from(["Succeeded", "Failed", "TimedOut", "Canceled", "Skipped"])
STEPS = st.lists(
    st.tuples(st.booleans(), st.booleans(), st.sampled_from(sorted(FINISHED)), st.booleans()),
    min_size=1,
    max_size=5,
)


def a_row(ordinal: int, previous: int | None, lifecycle: str | None = None) -> dict:
    return {"ordinal": ordinal, "previous_ordinal": previous, "previous_lifecycle": lifecycle}


def a_chain(*options: dict) -> tuple[StepDefinition, ...]:
    return tuple(
        StepDefinition(number, f"step{number}", uuid4(), "group", 60, options=each)
        for number, each in enumerate(options, 1)
    )


def a_run(*options: dict) -> Run:
    return Run(
        uuid4(), uuid4(), "job", 1, None, a_chain(*options), {}, begun=True, canceled=False
    )  # fmt: skip


PER_TARGET = {"advance": "perTarget"}


@given(st.dictionaries(st.integers(1, 20), LIFECYCLES), st.booleans(), st.integers(0, 20))
def test_a_core_that_starts_again_holds_the_same_targets(ends, continues, known):
    """`known`: so many ends are in the rows already."""
    in_rows = dict(list(ends.items())[:known])
    rows = [a_row(100 - number, number, in_rows.get(number)) for number in ends]
    restarted = PreviousTargets.of(rows, continues=continues)
    followed = PreviousTargets.of(
        [a_row(100 - number, number) for number in ends], continues=continues
    )
    for number, lifecycle in ends.items():
        restarted.target_ended(number, lifecycle)
        followed.target_ended(number, lifecycle)

    assert (restarted.held, restarted.skipped) == (followed.held, followed.skipped)
    goes_on = {"Succeeded"} | ({"Failed", "TimedOut", "Canceled"} if continues else set())
    assert restarted.skipped == {100 - n for n, end in ends.items() if end not in goes_on}
    assert restarted.held == restarted.skipped


@given(LIFECYCLES, st.booleans())
def test_a_target_that_takes_no_part_in_the_step_before_waits_for_its_end(lifecycle, continues):
    previous = PreviousTargets.of([a_row(1, 7), a_row(2, None)], continues=continues)
    previous.target_ended(7, lifecycle)
    assert not previous.may_start(2)

    started = previous.step_ended(lifecycle)

    assert started == ([2] if continues or lifecycle in {"Succeeded", "Skipped"} else [])
    assert previous.may_start(2) == bool(started)
    assert (2 in previous.skipped) == (not started)


def test_in_a_rerun_a_target_that_takes_no_part_in_the_step_before_starts_at_once():
    previous = PreviousTargets.of([a_row(1, None), a_row(2, 1)], continues=False, rerun=True)
    assert (previous.may_start(1), previous.may_start(2)) == (True, False)


@given(STEPS, st.data())
def test_a_step_follows_a_failure_only_target_by_target(steps, data):
    options = [
        {"advance": "perTarget" if number and per_target else "barrier",
         "onFailure": "continue" if continues else "stop"}
        for number, (per_target, continues, _, _) in enumerate(steps)
    ]  # fmt: skip
    run = a_run(*options, {"advance": data.draw(st.sampled_from(["barrier", "perTarget"]))})
    for plan, (_, _, lifecycle, planned) in zip(run.steps, steps, strict=False):
        run.reached[plan.step_id] = ReachedStep(
            plan.step_id, lifecycle, snapshot_id=uuid4() if planned else None
        )

    following = run.next()

    stops = any(
        lifecycle in {"Failed", "TimedOut", "Canceled"} and not continues
        for _, continues, lifecycle, _ in steps
    )
    by_target = run.steps[-1].is_per_target and steps[-1][3]
    assert following == (run.steps[-1] if not stops or by_target else None)


def test_a_run_enters_the_next_step_of_a_chain_as_soon_as_a_step_is_queued():
    run = a_run({}, PER_TARGET, PER_TARGET, {})
    for number in (0, 1):
        run.live.append(StepRun(run, run.steps[number]))
        assert run.next_of_chain() is None
        run.live[-1].phase = StepPhase.QUEUED
        assert run.next_of_chain() is run.steps[number + 1]
    run.canceled = True
    assert run.next_of_chain() is None
    run.reached[3] = ReachedStep(3, "Created")
    assert run.next_of_chain() is run.steps[2]


def test_a_target_that_goes_on_precedes_those_that_have_not_started():
    state = a_state(slots=1)
    first = a_step(state, 3, seconds=None)
    second = StepRun(first.run, a_chain({}, PER_TARGET)[1], phase=StepPhase.QUEUED)
    second.previous = PreviousTargets.of([a_row(n, n) for n in (1, 2, 3)], continues=False)
    first.run.live.append(second)
    for ordinal in (1, 2, 3):
        times = {"attempts": 0, "not_before": None, "deadline": None, "invocation_id": None}
        place = {"server_id": "s", "pool_name": None, "database_name": "d"}
        state.load(second, {"ordinal": ordinal} | times | place)
    state.follow(second)
    (task,) = reserve(state)

    over(state, task)
    (following,) = reserve(state)

    assert (task.step, task.target.ordinal) == (first, 1)
    assert (following.step, following.target.ordinal) == (second, 1)
    over(state, following)
    task, *_ = reserve(state)
    over(state, task, lifecycle="Failed")
    assert (second.previous.skipped, second.is_idle) == ({2}, False)


def test_the_rules_of_the_first_step_hold_for_the_chain():
    rules = RolloutRules.of({"rollout": {"waves": [1, "100%"], "haltAfterFailures": 2}}, 10)
    first, second = StepRollout(rules), StepRollout(RolloutRules.of({}, 10))
    second.join(first.chain)
    first.target_loaded(1)
    first.target_ended(1, "Succeeded", None, 1.0)

    def decisions(*, chain_busy=False):
        common = {"waiting": 5, "same_error_limit": 1, "now": 9.0}
        return [decide(each, **common, chain_busy=chain_busy) for each in (first, second)]

    assert decisions(chain_busy=True) == [None, None]
    assert decisions() == [OpenWave(2), None]
    second.count("Failed", "42P01")
    assert decisions(chain_busy=True) == [None, None]
    first.count("Failed", "42P01")
    halts = decisions()
    assert all(isinstance(each, Halt) and each.rule == "FailureLimit" for each in halts)
    assert halts[0] == halts[1]
    second.resume("now")
    assert decisions(chain_busy=True) == [None, None]


def test_equal_errors_are_counted_in_each_step_and_halt_all_of_a_chain():
    first, second = (StepRollout(RolloutRules.of({}, 10)) for _ in range(2))
    second.join(first.chain)
    for _ in range(3):
        first.count("Succeeded", None)
        second.count("Failed", "42P01")
    for each in (first, second):
        halt = decide(each, waiting=5, same_error_limit=3, now=9.0)
        assert isinstance(halt, Halt)
        assert halt.rule == "SameError"
