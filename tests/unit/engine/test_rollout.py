"""Rollouts: waves, limits that halt, gates and pauses; the decision depends on rules and ends of targets only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.scheduling.rollout import (
    MOST_SECONDS,
    Halt,
    OpenWave,
    RolloutRules,
    StepRollout,
    Wait,
    decide,
    duration_seconds,
    wave_ends,
)
from engine.scheduling.runs import StepDefinition

COUNT_OR_PERCENT = st.one_of(
    st.integers(1, 2000), st.integers(1, 100).map(lambda percent: f"{percent}%")
)
ENDS = st.sampled_from(["Succeeded", "Failed", "TimedOut", "Canceled", "Skipped"])
SQLSTATES = st.sampled_from([None, "42P01", "23505", "40001"])


def a_rollout(targets: int = 10, **rollout) -> StepRollout:
    made = StepRollout(RolloutRules.of({"rollout": {"waves": [1, "100%"], **rollout}}, targets))
    load(made, targets)
    return made


def load(rollout: StepRollout, targets: int) -> None:
    for ordinal in range(1, targets + 1):
        rollout.target_loaded(ordinal)


def decision(rollout: StepRollout, *, waiting: int = 5, limit: int = 50, now: float = 100.0):
    return decide(rollout, waiting=waiting, same_error_limit=limit, now=now)


@pytest.mark.parametrize(
    ("waves", "targets", "ends"),
    [
        ([1, "5%", "100%"], 1000, (1, 50, 1000)),
        ([1, "5%", "100%"], 10, (1, 10)),
        ([1], 5, (1, 5)),
        (["100%"], 7, (7,)),
        ([5, 3, "100%"], 7, (5, 7)),
        (["0.1%", "100%"], 3, (1, 3)),
        (["7%"], 100, (7, 100)),
        ([10], 3, (3,)),
        ([1], 0, (0,)),
    ],
)
def test_a_wave_says_how_many_targets_have_started_with_it(waves, targets, ends):
    assert wave_ends(waves, targets) == ends


@given(st.lists(COUNT_OR_PERCENT, min_size=1, max_size=6), st.integers(1, 3000))
def test_waves_cover_every_target_once(waves, targets):
    ends = wave_ends(waves, targets)
    assert ends[-1] == targets
    assert list(ends) == sorted(set(ends))
    assert ends[0] >= 1


@pytest.mark.parametrize(
    ("text", "seconds"), [("PT10M", 600), ("P1DT2H3M4S", 93784), ("PT0S", 0), ("P2D", 172800)]
)
def test_durations(text, seconds):
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize("digits", [10, 30, 400])
def test_a_pause_ends_at_a_time_that_the_database_can_store(digits):
    assert duration_seconds(f"P{'9' * digits}D") == MOST_SECONDS


def test_only_targets_of_open_waves_start():
    rollout = a_rollout()
    assert [n for n in range(1, 11) if rollout.may_start(n)] == [1]
    rollout.wave = 2
    assert all(rollout.may_start(n) for n in range(1, 11))


def test_the_next_wave_opens_after_every_target_of_the_wave():
    rollout = a_rollout(waves=[2, "100%"])
    rollout.target_ended(1, "Succeeded", None, 100.0)
    assert decision(rollout) is None
    rollout.target_ended(2, "Succeeded", None, 100.0)
    assert decision(rollout) == OpenWave(2)


def test_one_failure_halts_unless_a_limit_is_given():
    rollout = a_rollout()
    rollout.target_ended(1, "Failed", "42P01", 100.0)
    halt = decision(rollout)
    assert isinstance(halt, Halt)
    assert halt.rule == "FailureLimit"
    assert "wave 1 of 2" in halt.message
    assert "1 target failed" in halt.message


def test_a_percentage_counts_the_targets_of_the_open_waves():
    rollout = a_rollout(100, waves=[20, "100%"], haltAfterFailures="10%")
    rollout.target_ended(1, "Failed", None, 1.0)
    assert decision(rollout) is None
    rollout.target_ended(2, "TimedOut", None, 1.0)
    assert isinstance(decision(rollout), Halt)
    rollout.wave = 2
    assert decision(rollout) is None


def test_nothing_is_halted_when_no_target_waits():
    rollout = a_rollout()
    rollout.target_ended(1, "Failed", None, 1.0)
    assert decision(rollout, waiting=0) is None


def test_a_manual_gate_waits_for_an_operator():
    rollout = a_rollout(gate="manual")
    rollout.target_ended(1, "Succeeded", None, 1.0)
    wait = decision(rollout)
    assert isinstance(wait, Wait)
    assert wait.reason == "Gate"
    rollout.approved_wave = 2
    assert decision(rollout) == OpenWave(2)


def test_a_pause_ends_by_itself_or_by_an_operator():
    rollout = a_rollout(pauseBetween="PT1M")
    rollout.target_ended(1, "Succeeded", None, 100.0)
    wait = decision(rollout, now=120.0)
    assert (wait.reason, wait.until) == ("WavePause", 160.0)
    assert decision(rollout, now=160.0) == OpenWave(2)
    rollout.approved_wave = 2
    assert decision(rollout, now=120.0) == OpenWave(2)


def test_equal_errors_in_a_row_halt_a_step_without_rollout():
    rollout = StepRollout(RolloutRules.of({}, 100))
    load(rollout, 100)
    for ordinal in range(1, 4):
        assert decision(rollout, limit=3) is None
        rollout.target_ended(ordinal, "Failed", "42P01", 1.0)
    halt = decision(rollout, limit=3)
    assert isinstance(halt, Halt)
    assert halt.rule == "SameError"
    assert "42P01" in halt.message
    assert decision(rollout, limit=0) is None


@pytest.mark.parametrize(
    ("lifecycle", "sqlstate"),
    [("Succeeded", None), ("Failed", "23505"), ("Failed", "40001"), ("TimedOut", None)],
    ids=["success", "another-error", "retryable", "timeout"],
)
def test_what_interrupts_the_row_of_equal_errors(lifecycle, sqlstate):
    rollout = StepRollout(RolloutRules.of({}, 100))
    load(rollout, 100)
    for ordinal, end in enumerate(
        [("Failed", "42P01"), ("Failed", "42P01"), (lifecycle, sqlstate)]
    ):
        rollout.target_ended(ordinal + 1, *end, 1.0)
    rollout.target_ended(4, "Failed", "42P01", 1.0)
    assert decision(rollout, limit=3) is None


def test_an_error_that_the_step_retries_does_not_count():
    rollout = StepRollout(RolloutRules.of({"retryOn": ["42"]}, 100))
    for ordinal in range(1, 10):
        rollout.target_ended(ordinal, "Failed", "42P01", 1.0)
    assert decision(rollout, limit=3) is None


def test_after_a_resume_earlier_failures_do_not_count():
    rollout = a_rollout(haltAfterFailures=2, waves=["100%"])
    for ordinal in (1, 2):
        rollout.target_ended(ordinal, "Failed", None, 1.0)
    assert isinstance(decision(rollout), Halt)
    rollout.halted = True
    assert decision(rollout) is None
    rollout.resume("2031-01-01")
    assert decision(rollout) is None
    assert rollout.may_start(3)
    rollout.target_ended(3, "Failed", None, 1.0)
    assert decision(rollout) is None
    rollout.target_ended(4, "Failed", None, 1.0)
    assert isinstance(decision(rollout), Halt)


@given(
    st.lists(st.tuples(ENDS, SQLSTATES), min_size=1, max_size=60),
    st.lists(COUNT_OR_PERCENT, min_size=1, max_size=4),
    st.one_of(st.none(), COUNT_OR_PERCENT),
    st.integers(0, 4),
)
def test_a_rollout_never_opens_a_wave_early_and_stays_halted(ends, waves, halt_after, limit):
    """Plays a step: targets of the open waves end in order, and decisions are carried out at once."""
    targets = len(ends)
    options = {"waves": waves} | ({} if halt_after is None else {"haltAfterFailures": halt_after})
    rollout = StepRollout(RolloutRules.of({"rollout": options}, targets))
    load(rollout, targets)
    waiting = set(range(1, targets + 1))
    started: list[int] = []
    while True:
        step = decide(rollout, waiting=len(waiting), same_error_limit=limit, now=2.0)
        if isinstance(step, Halt):
            rollout.halted = True
            break
        if isinstance(step, OpenWave):
            assert step.wave == rollout.wave + 1
            assert waiting.isdisjoint(range(1, rollout.open_end + 1))
            rollout.wave = step.wave
            rollout.unfinished = sum(n <= rollout.open_end for n in waiting)
            continue
        ready = [n for n in sorted(waiting) if rollout.may_start(n)]
        if not ready:
            break
        waiting.discard(ready[0])
        started.append(ready[0])
        rollout.target_ended(ready[0], *ends[ready[0] - 1], 1.0)
    failures = sum(ends[n - 1][0] in {"Failed", "TimedOut"} for n in started)
    assert started == list(range(1, len(started) + 1))
    if rollout.halted:
        assert failures >= rollout.rules.failure_limit(rollout.wave)
        assert not any(rollout.may_start(n) for n in waiting)
        assert decide(rollout, waiting=len(waiting), same_error_limit=limit, now=9e9) is None
    else:
        assert not waiting


@given(st.lists(st.tuples(ENDS, SQLSTATES), max_size=80), st.integers(1, 10))
def test_a_core_that_starts_again_decides_alike_from_the_newest_ends(ends, limit):
    """`rollout_progress` returns the number of failures and at most `limit` newest ends."""
    first = StepRollout(RolloutRules.of({}, 1000))
    for ordinal, (lifecycle, sqlstate) in enumerate(ends, 1):
        first.target_ended(ordinal, lifecycle, sqlstate, 1.0)
    counted = [end for end in ends if end[0] in {"Succeeded", "Failed", "TimedOut"}]
    again = StepRollout(RolloutRules.of({}, 1000))
    for lifecycle, sqlstate in counted[-limit:]:
        again.count(lifecycle, sqlstate)
    again.failures = first.failures
    both = (decide(each, waiting=1, same_error_limit=limit, now=1.0) for each in (first, again))
    one, other = (None if each is None else each.rule for each in both)
    assert one == other


@pytest.mark.parametrize(
    ("waves", "targets", "begins_with_one"),
    [([1, "100%"], 1, True), (["5%", "100%"], 10, True), ([2, "100%"], 9, False), (["100%"], 1, False),
     ([1], 0, False)],
)  # fmt: skip
def test_a_first_wave_of_one_is_known_also_while_there_is_only_one_target(
    waves, targets, begins_with_one
):
    rules = RolloutRules.of({"rollout": {"waves": waves}}, targets)

    assert rules.begins_with_one == begins_with_one


def test_a_run_that_was_started_without_a_rollout_by_null_can_be_planned():
    """Older versions of jobs.sp_start_job let a run have it."""
    step = StepDefinition(step_id=1, name="s", timeout_seconds=1, options={"rollout": None})

    assert step.order_by is None
    assert RolloutRules.of(step.options, 3).wave_ends == (3,)
