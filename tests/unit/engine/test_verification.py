"""What a verify query must return, and what follows from it for a step."""

import msgspec
import pytest

from engine.attempt.outcome import Outcome
from engine.attempt.verification import not_asked
from engine.core.orphaned_attempt import OrphanOutcome, recorded_outcome
from engine.model.verification import MAX_SHOWN, Verify, VerifyReply, received
from tests.support.attempts import a_step, a_task

NONE = VerifyReply(0, ["integer"])
TRUE = VerifyReply(1, ["boolean"], ["true"])
NULL = VerifyReply(1, ["boolean"], [None])
PAIR = VerifyReply(1, ["boolean", "text"], ["true", "x"])
MANY = VerifyReply(3, ["integer"], ["1"])
EMPTY_ROW = VerifyReply(1, [], [])


@pytest.mark.parametrize(
    ("expect", "holds"),
    [
        ("nonEmpty", [False, True, True, True, True, True]),
        ("empty", [True, False, False, False, False, False]),
        ("true", [False, True, False, False, False, False]),
    ],
)
def test_rows_are_judged_by_what_is_expected(expect, holds):
    verify = Verify("select 1", expect)

    assert [verify.holds(reply) for reply in (NONE, TRUE, NULL, PAIR, MANY, EMPTY_ROW)] == holds


def test_true_is_a_boolean():
    assert not Verify("select 1", "true").holds(VerifyReply(1, ["text"], ["true"]))


@pytest.mark.parametrize(
    ("value", "text", "holds"),
    [
        ("x", "x", True),
        ("", "", True),
        ("1", "1", True),
        (1, "1", True),
        (1, "1.0", False),
        (0.5, "0.5", True),
        (-3, "-3", True),
        (True, "true", True),
        (False, "true", False),
        ("true", "true", True),
        ("null", None, False),
    ],
)
def test_values_are_compared_as_text(value, text, holds):
    verify = msgspec.convert({"sql": "select 1", "expect": "value", "value": value}, Verify)

    assert verify.holds(VerifyReply(1, ["text"], [text])) == holds
    assert not verify.holds(VerifyReply(2, ["text"], [text]))


def test_the_first_column_has_the_value():
    assert Verify("select 1", "value", "true").holds(PAIR)
    assert not Verify("select 1", "value", "x").holds(PAIR)


def test_a_message_has_what_was_expected_and_returned_and_is_bounded():
    long = "x" * 10_000

    assert Verify("select 1", "value", 7).expected == "one row with the value '7'"
    assert [received(each) for each in (NONE, TRUE, NULL, MANY, EMPTY_ROW)] == [
        "no row",
        "one row with the value 'true'",
        "one row with the value NULL",
        "3 rows",
        "1 row",
    ]
    assert received(PAIR) == "one row with the value 'true' in the first of 2 columns"
    assert len(received(VerifyReply(1, ["text"], [long]))) < MAX_SHOWN + 50
    assert len(Verify("select 1", "value", long).expected) < MAX_SHOWN + 50


def test_a_step_knows_its_verify_query():
    step = a_step("select 1", verify={"sql": " select 2 ; ", "timeoutSeconds": 5})

    assert step.options.verify == Verify("select 2".join((" ", " ; ")), timeout_seconds=5)
    assert step.verify_query.text.strip() == "select 2"
    assert not step.batchable
    assert a_step("select 1").batchable


@pytest.mark.parametrize("sql", ["select 1; select 2", "delete from t", "select $(nothing)"])
def test_a_step_that_was_written_through_sql_is_refused_by_the_host(sql):
    assert a_step("select 1", verify={"sql": sql}).refusal.startswith("options.verify: ")
    assert a_step("select 1", verify={"sql": "select 1"}).refusal == ""


@pytest.mark.parametrize(
    ("script", "reason"), [(None, "ConnectFailed"), ("committed", "VerifyNotAnswered"), ("unknown", "OutcomeUnknown")]
)  # fmt: skip
def test_an_attempt_that_could_not_connect_says_what_is_known_of_the_script(script, reason):
    lost = Outcome(
        lifecycle="Failed", phase="connect", reason="ConnectFailed", retry=True, message="No."
    )

    outcome = not_asked(lost, a_task(script_outcome=script))

    assert (outcome.reason, outcome.retry) == (reason, True)
    assert outcome.message.endswith("No.")


@pytest.mark.parametrize(
    ("xact", "outcome"),
    [
        (None, OrphanOutcome.ABORTED),
        ("committed", OrphanOutcome.COMMITTED),
        ("unknown", OrphanOutcome.UNKNOWN),
        ("autocommit", OrphanOutcome.UNKNOWN),
        ("7@1/2", None),
    ],
)
def test_what_is_recorded_of_a_lost_attempt(xact, outcome):
    assert recorded_outcome(xact) is outcome
