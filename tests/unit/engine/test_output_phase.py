"""What an attempt ends with when its output could not be written, and what the next one begins with."""

import asyncio

import asyncpg
import msgspec
import pytest

from engine.attempt import output_phase
from engine.attempt.cancel_token import CANCELED, HOST_STOPPED, CancelToken
from engine.attempt.canceller import CanceledError
from engine.attempt.executor import ExecutorTask
from engine.attempt.outcome import Outcome
from engine.attempt.row_spool import SpoolLost
from engine.core.communicator import next_phase
from engine.core.orphaned_attempt import OrphanOutcome, recorded_outcome
from engine.model.output import StepOutput
from engine.pgwire.errors import ConnectionAborted, UnexpectedAnswer
from engine.pool.errors import Full
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from tests.support.attempts import a_step, a_task

SUCCEEDED = Outcome(lifecycle="Succeeded", phase="commit", rows=3, last_message="Succeeded.")
VERIFIED = {"script": "verified"}


def refused(state: str) -> asyncpg.PostgresError:
    return asyncpg.PostgresError.new({"C": state, "M": "no"})


async def outcome(error, *, reason=None, left=60.0, output=None, **options):
    token = CancelToken()
    if reason:
        token.cancel(reason)
    deadline = asyncio.get_running_loop().time() + left
    entry = ExecutorTask(a_task(), token, deadline)
    step = msgspec.structs.replace(a_step("select 1", **options), output=output)
    return output_phase._not_written(SUCCEEDED, entry, step, error)


@pytest.mark.parametrize(
    ("error", "retry", "sqlstate"),
    [
        (refused("53100"), True, "53100"),
        (refused("40P01"), True, "40P01"),
        (refused("55P03"), True, "55P03"),
        (refused("25006"), True, "25006"),
        (refused("42501"), False, "42501"),
        (refused("22P02"), False, "22P02"),
        (refused("23505"), False, "23505"),
        (ConnectionAborted("lost"), True, None),
        (UnexpectedAnswer("what"), True, None),
        (Unavailable("away", code="TargetUnreachable"), True, None),
        (Full("full"), True, None),
        (NotFound("none", code="CredentialMissing"), False, None),
        (InvalidRequest("column", code="OutputColumns"), False, None),
    ],
    ids=repr,
)
async def test_a_failure_is_retried_where_a_repeat_may_succeed(error, retry, sqlstate):
    ended = await outcome(error)

    assert (ended.lifecycle, ended.reason, ended.phase) == ("Failed", "OutputFailed", "output")
    assert (ended.retry, ended.again, ended.sqlstate) == (retry, False, sqlstate)
    assert ended.checkpoint == VERIFIED
    assert ended.rows == 3, "what the script returned is kept"
    assert ended.message is not None
    assert ended.message.startswith("The script succeeded; its output was not written: ")


async def test_what_the_server_of_the_output_refuses_names_the_table():
    output = StepOutput("reports", "fleet", "public", "sizes")

    ended = await outcome(refused("42501"), output=output)

    assert ended.message is not None
    assert ended.message.endswith(": no (output: public.sizes in fleet at reports)")


async def test_retry_on_widens_what_is_retried():
    assert (await outcome(refused("42501"), retryOn=["42"])).retry


@pytest.mark.parametrize(
    "error", [CanceledError(), refused("57014"), ConnectionAborted("")], ids=repr
)
@pytest.mark.parametrize(
    ("reason", "left", "lifecycle", "again"),
    [(CANCELED, 60, "Canceled", False), (HOST_STOPPED, 60, "Canceled", True), (None, -1, "TimedOut", False)],
)  # fmt: skip
async def test_an_output_that_was_stopped_says_so(error, reason, left, lifecycle, again):
    ended = await outcome(error, reason=reason, left=left)

    assert (ended.lifecycle, ended.reason) == (lifecycle, "OutputFailed")
    assert (ended.again, ended.checkpoint) == (again, VERIFIED)
    assert ended.retry == (lifecycle == "TimedOut"), "the next attempt of the run writes the output"


async def test_a_statement_that_the_server_s_administrator_cancels_is_retried():
    assert (await outcome(refused("57014"))).retry


async def test_lost_rows_repeat_the_script_only_where_it_may_be_repeated():
    lost, repeated = await outcome(SpoolLost()), await outcome(SpoolLost(), idempotent=True)

    assert (lost.retry, lost.checkpoint) == (False, VERIFIED)
    assert (repeated.retry, repeated.checkpoint) == (True, {})
    for each in (lost, repeated):
        assert each.message is not None
        assert "its rows are lost" in each.message


@pytest.mark.parametrize(
    ("guard", "attempt", "lifecycle"),
    [(True, 2, "Failed"), ("job", 2, "Failed"), ("job", 1, "Succeeded")],
)
def test_what_was_applied_before_has_no_rows(guard, attempt, lifecycle):
    applied = Outcome(lifecycle="Succeeded", phase="run", reason="AlreadyApplied")
    step, task = a_step("insert into t values (1)", guard=guard), a_task(attempt=attempt)

    ended = output_phase._without_rows(applied, task, step)

    reason = "AlreadyApplied" if lifecycle == "Succeeded" else "OutputFailed"
    assert (ended.lifecycle, ended.reason, ended.retry) == (lifecycle, reason, False)


@pytest.mark.parametrize(
    ("xact", "verify", "outcome", "phase", "script"),
    [
        ("5:a:b", False, OrphanOutcome.COMMITTED, "output", "verified"),
        ("5:a:b", True, OrphanOutcome.COMMITTED, "verify", "committed"),
        ("5:a:b", True, OrphanOutcome.UNKNOWN, "verify", "unknown"),
        ("5:a:b", False, OrphanOutcome.UNKNOWN, None, None),
        ("committed", True, OrphanOutcome.COMMITTED, "verify", "committed"),
        ("verified", True, OrphanOutcome.COMMITTED, "output", "verified"),
        ("verified", False, OrphanOutcome.COMMITTED, "output", "verified"),
    ],
)
def test_the_attempt_after_a_lost_host_begins_where_it_must(xact, verify, outcome, phase, script):
    report = next_phase({"xact_id": xact, "verify": verify, "output": True}, outcome)

    assert report.get("phase") == phase
    assert report.get("checkpoint", {}).get("script") == script
    assert report.get("again") is (None if phase is None else True)
    assert next_phase({"xact_id": xact, "verify": False, "output": False}, outcome) == {}


def test_a_verified_script_is_known_to_be_committed():
    assert recorded_outcome("verified") is OrphanOutcome.COMMITTED
