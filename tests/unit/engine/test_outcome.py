"""The words for how an attempt ended."""

import pytest

from engine.access.credentials import _unreadable
from engine.model.credential import Credential
from engine.attempt.outcome import Outcome, fingerprint, stopped
from engine.model.sqlstates import retryable
from engine.attempt.cancel_token import CancelToken
from muster.core.errors import InvalidRequest, NotFound, Unavailable


@pytest.mark.parametrize(
    ("fault", "reason", "retry"),
    [
        (Unavailable("x", code="TargetUnreachable"), "ConnectFailed", True),
        (Unavailable("x", code="TargetTimeout"), "ConnectFailed", True),
        (InvalidRequest("x", code="TargetAuthenticationFailed"), "ConnectFailed", False),
        (InvalidRequest("x", code="TargetTlsError"), "ConnectFailed", False),
        (NotFound("x", code="TargetDatabaseNotFound"), "ConnectFailed", False),
        (InvalidRequest("x", code="TargetNotAllowed"), "TargetNotAllowed", False),
        (NotFound("x", code="CredentialMissing"), "CredentialMissing", False),
        (InvalidRequest("x", code="ClientKeyUnreadable"), "ClientKeyUnreadable", False),
        (
            _unreadable(Credential(name="c", username="u", secret="s"), "x"),
            "CredentialUnreadable",
            False,
        ),
        (
            InvalidRequest("x", code="TransactionModeNotPossible"),
            "TransactionModeNotPossible",
            False,
        ),
    ],
)
def test_a_connection_that_was_not_made(fault, reason, retry):
    outcome = Outcome.of_connect(fault)

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", reason, retry)
    assert outcome.fingerprint == fault.code, "by which the command line knows what to do"
    assert (outcome.phase, outcome.message, outcome.last_message) == (
        "connect",
        fault.message,
        fault.message,
    )


@pytest.mark.parametrize(
    ("kind", "sqlstate", "retry_on", "retry"),
    [
        (InvalidRequest, "28P01", (), False), (InvalidRequest, "28P01", ("28P01",), True),
        (InvalidRequest, "42501", ("42",), True), (NotFound, "3D000", (), True),
        (Unavailable, "57P01", (), True), (Unavailable, "42704", (), False),
    ],
)  # fmt: skip
def test_a_refusal_with_a_sqlstate_is_repeated_by_the_rule_for_statements(
    kind, sqlstate, retry_on, retry
):
    fault = kind("No.", code="TargetX", sqlstate=sqlstate, detail="as the server said it")

    outcome = Outcome.of_connect(fault, retry_on)

    assert (outcome.retry, outcome.sqlstate) == (retry, sqlstate)
    assert outcome.detail == "as the server said it"


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('relation "a" does not exist', 'relation "b.c" does not exist', True),
        ("value 17 is too long", "value 4 is too long", True),
        ("Relation «a» existiert nicht", "Relation «b» existiert nicht", True),
        ("deadlock detected", "could not serialize access", False),
    ],
)
def test_names_and_numbers_do_not_count(one, other, equal):
    assert (fingerprint("42P01", one) == fingerprint("42P01", other)) is equal
    assert fingerprint("42P01", one) != fingerprint("42704", one)


@pytest.mark.parametrize(
    ("sqlstate", "retry_on", "expected"),
    [
        ("42P01", (), False), ("28P01", (), False), ("22012", (), False), ("23505", (), False),
        ("40001", (), True), ("57014", (), True), ("XX000", (), True), ("23505", ("23",), True),
        ("23505", ("23505",), True), ("23505", ("23503", "42"), False),
    ],
)  # fmt: skip
def test_what_is_worth_another_try(sqlstate, retry_on, expected):
    assert retryable(sqlstate, retry_on) is expected


def test_being_stopped_has_three_names():
    assert stopped("Canceled", safe=True)["lifecycle"] == "Canceled"
    assert stopped("TimedOut", safe=True)["lifecycle"] == "TimedOut"
    assert stopped("HostStopped", safe=True)["again"]
    assert stopped("HostStopped", safe=False)["reason"] == "OutcomeUnknown"


def test_the_first_wish_stays():
    token, woken = CancelToken(), []
    token.listen(lambda: woken.append(1))
    token.cancel("HostStopped")
    token.cancel("Canceled")

    assert (token.reason, woken) == ("HostStopped", [1])


def test_a_wish_that_came_before_is_heard_at_once():
    token, woken = CancelToken(), []
    token.cancel()
    token.listen(lambda: woken.append(1))

    assert (token.reason, woken) == ("Canceled", [1])
