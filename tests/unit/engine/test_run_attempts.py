"""Which attempt of a run follows which: the tables of the retry rules, their limits, and what always holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.scheduling.run_attempts import (
    Counters,
    Next,
    Pass,
    RunAttemptRules,
    decide,
)

DEFAULTS = RunAttemptRules()
LIMITS = st.integers(1, 30)
RULES = st.builds(
    RunAttemptRules,
    max_successive_without_progress=LIMITS,
    max_without_progress=LIMITS,
    max_with_progress=LIMITS,
    backoff_seconds=st.lists(st.integers(0, 86_400), max_size=6).map(tuple),
)


def play(outcomes: str, rules: RunAttemptRules = DEFAULTS, *, last_succeeds: bool = False):
    """N: an attempt without progress, Y: one with; returns the pauses and how it ended: None, if it goes on."""
    pauses: list[float] = []
    counters = Counters()
    for number, letter in enumerate(outcomes, 1):
        succeeded = last_succeeds and number == len(outcomes)
        ended = Pass(newly_succeeded=letter == "Y", remaining=0 if succeeded else 3)
        decision = decide(rules, counters, ended, now=1000.0)
        counters = decision.counters
        if decision.next is Next.END:
            return pauses, counters, decision.limit or "complete", number
        assert decision.due is not None
        pauses.append(decision.due - 1000.0)
    return pauses, counters, None, len(outcomes)


def test_check_44_the_first_table_of_the_retry_rules():
    pauses, counters, end, attempts = play("NNYYYNY", last_succeeds=True)

    assert pauses == [10, 30, 0, 0, 0, 10]
    assert (end, attempts) == ("complete", 7)
    assert counters == Counters(successive=0, without_progress=3, with_progress=4)


def test_check_45_the_second_table_of_the_retry_rules():
    pauses, counters, end, attempts = play("YYYYYYNNNNN")

    assert pauses == [0, 0, 0, 0, 0, 0, 10, 30, 90, 270]
    assert (end, attempts) == ("maxSuccessiveWithoutProgress", 11)
    assert counters == Counters(successive=5, without_progress=5, with_progress=6)


@pytest.mark.parametrize(
    ("outcomes", "limit", "attempts"),
    [
        ("N" * 40, "maxSuccessiveWithoutProgress", 5),
        ("Y" * 40, "maxWithProgress", 20),
        ("NNNNY" * 8, "maxWithoutProgress", 12),
        ("NY" * 9 + "Y" * 20, "maxWithProgress", 29),  # the longest run
    ],
)
def test_check_46_the_limits(outcomes, limit, attempts):
    assert play(outcomes)[2:] == (limit, attempts)


@pytest.mark.parametrize(
    ("newly_succeeded", "counters"),
    [(0, Counters(3, 5, 4)), (1, Counters(0, 4, 5)), (900, Counters(0, 4, 5))],
)
def test_check_47_progress_is_at_least_one_target_that_newly_succeeded(newly_succeeded, counters):
    decision = decide(DEFAULTS, Counters(2, 4, 4), Pass(newly_succeeded, remaining=10), now=0.0)

    assert decision.counters == counters
    assert decision.due == (90 if newly_succeeded == 0 else 0)


def test_check_48_a_run_ends_when_nothing_that_failed_may_be_repeated():
    """Targets whose error is not retried do not remain."""
    decision = decide(DEFAULTS, Counters(), Pass(newly_succeeded=0, remaining=0), now=0.0)

    assert (decision.next, decision.limit) == (Next.END, None)


def test_each_number_can_be_configured():
    rules = RunAttemptRules(2, 3, 4, backoff_seconds=(1, 5))

    assert play("NNN", rules) == ([1], Counters(2, 2, 0), "maxSuccessiveWithoutProgress", 2)
    assert play("NYNYN", rules)[2:] == ("maxWithoutProgress", 5)
    assert play("YYYYY", rules)[2:] == ("maxWithProgress", 4)
    longer = RunAttemptRules(9, 9, 9, backoff_seconds=(1, 5))
    assert play("NNNN", longer)[0] == [1, 5, 5, 5], "the last pause holds for all that follow"
    assert play("NN", RunAttemptRules(backoff_seconds=()))[0] == [0, 0]


def test_the_message_says_what_the_attempt_came_to():
    assert decide(DEFAULTS, Counters(), Pass(0, 1), 0.0).message == (
        "none newly succeeded, 1 target remains"
    )
    assert decide(DEFAULTS, Counters(), Pass(7, 2), 0.0).message == (
        "7 newly succeeded, 2 targets remain"
    )
    assert decide(DEFAULTS, Counters(4, 4, 0), Pass(0, 2), 0.0).message == (
        "No further attempt: maxSuccessiveWithoutProgress is 5."
    )


@given(RULES, st.lists(st.integers(0, 5), max_size=80))
def test_no_run_exceeds_a_limit_and_every_decision_can_be_made_again(rules, outcomes):
    counters, history = Counters(), []
    for newly_succeeded in outcomes:
        decision = decide(rules, counters, Pass(newly_succeeded, remaining=1), now=50.0)
        history.append(newly_succeeded)
        assert decision.counters == Counters.of(history), "the stored attempts say it all"
        counters = decision.counters
        assert counters.successive <= rules.max_successive_without_progress
        assert counters.without_progress <= rules.max_without_progress
        assert counters.with_progress <= rules.max_with_progress
        if decision.next is Next.END:
            assert decision.limit is not None
            return
        assert decision.due is not None
        assert decision.due >= 50.0
        if newly_succeeded:
            assert decision.due == 50.0, "there is a pause after attempts without progress only"
    assert len(outcomes) < rules.max_without_progress + rules.max_with_progress


@given(RULES, st.builds(Counters, LIMITS, LIMITS, LIMITS), st.integers(0, 9), st.integers(0, 9))
def test_a_stop_stays_a_stop_when_fewer_targets_remain(rules, counters, newly, remaining):
    """The steps of a chain end one after another, and a core that starts between them asks again."""
    before = decide(rules, counters, Pass(newly, remaining), now=0.0)
    if before.next is Next.END:
        for fewer in range(remaining + 1):
            assert decide(rules, counters, Pass(newly, fewer), now=0.0).next is Next.END
