"""What becomes of a target after an attempt: over, or another try, and when."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.control_db import installed
from tests.support.executions import EPOCH, a_session
from tests.support.execution_fixture import FAILED, ITEM, SUCCEEDED, an_execution, set_steps

pytestmark = [pytest.mark.newest, pytest.mark.deep]

CANCEL = {
    "run": "update jobs_internal.job_execution set cancel_requested_at = now()",
    "step": "update jobs_internal.step_execution set cancel_requested_at = now()",
    "target": "update jobs_internal.target_execution set cancel_requested_at = now()",
}
RETRY, AGAIN = {"retry": True}, {"again": True}


DECISIONS = [
    # the attempt                 says           retries  cancelled   the target
    ("Succeeded",                 {},            10,      None,       "Succeeded"),
    ("Succeeded",                 RETRY | AGAIN, 10,      None,       "Succeeded"),
    ("Succeeded",                 {},            10,      "run",      "Succeeded"),
    ("TimedOut",                  RETRY | AGAIN, 10,      None,       "TimedOut"),
    ("TimedOut",                  RETRY,         10,      "step",     "TimedOut"),
    ("Canceled",                  RETRY,         10,      None,       "Canceled"),
    ("Canceled",                  AGAIN,         10,      None,       "WaitingForRetry"),
    ("Canceled",                  AGAIN,         10,      "target",   "Canceled"),
    ("Failed",                    {},            10,      None,       "Failed"),
    ("Failed",                    {},            10,      "run",      "Failed"),
    ("Failed",                    RETRY,         10,      None,       "WaitingForRetry"),
    ("Failed",                    RETRY,         1,       None,       "WaitingForRetry"),
    ("Failed",                    RETRY,         0,       None,       "Failed"),
    ("Failed",                    RETRY,         0,       "run",      "Failed"),
    ("Failed",                    RETRY,         10,      "run",      "Canceled"),
    ("Failed",                    RETRY,         10,      "step",     "Canceled"),
    ("Failed",                    RETRY,         10,      "target",   "Canceled"),
    ("Failed",                    AGAIN,         0,       None,       "WaitingForRetry"),
    ("Failed",                    AGAIN,         0,       "step",     "Canceled"),
]  # fmt: skip


async def test_what_would_have_been_made_again_and_was_cancelled_says_so(execution, owner):
    (key,) = await execution.started(1)
    await owner.execute(CANCEL["target"])
    said = {"lifecycle": "Canceled", "reason": "BrokenOff", "last_message": "It is made again."}

    await execution.report(results=[key | said | AGAIN])

    task, target = await execution.task(1), await execution.target(1)
    assert (task["end_reason"], target["end_reason"]) == ("BrokenOff", "Canceled")
    assert target["last_message"] == "It was cancelled."


@pytest.mark.parametrize(("attempt", "says", "retries", "cancelled", "expected"), DECISIONS)
async def test_the_target_ends_or_waits(
    execution, owner, attempt, says, retries, cancelled, expected
):
    await set_steps(owner, retry_attempts=retries)
    (key,) = await execution.started(1)
    if cancelled:
        await owner.execute(CANCEL[cancelled])
    reason = None if attempt == "Succeeded" else "ConnectionLost"
    said = {"lifecycle": attempt, "reason": reason, "last_message": "so it was", "phase": "commit"}

    assert await execution.report(results=[key | said | says]) == []

    task, target = await execution.task(1), await execution.target(1)
    waiting = expected == "WaitingForRetry"
    assert (task["lifecycle"], task["end_reason"]) == (attempt, reason)
    assert target["lifecycle"] == expected
    assert (target["end_time"] is None) is waiting
    assert target["wait_reason"] == ("Retry" if waiting else None)
    assert (target["not_before"] is not None) is waiting
    changed = expected == "Canceled" != attempt
    called_off = attempt == "Canceled" and bool(cancelled)
    canceled = changed or called_off
    assert target["end_reason"] == (None if waiting else "Canceled" if canceled else reason)
    assert (target["last_message"], target["phase"], target["attempts"]) == (
        "It was cancelled." if called_off else "so it was",
        "commit",
        1,
    )
    (told,) = await execution.told()
    seconds = target["not_before"].timestamp() if waiting else None
    assert told == ITEM | {
        "invocation_id": key["invocation_id"], "lifecycle": expected, "reason": reason,
        "not_before": pytest.approx(seconds, abs=1e-5) if waiting else None,
        "deadline": until(target) if waiting else None,
    }  # fmt: skip
    ledger = await owner.fetch("select lifecycle, end_reason from jobs_internal.target_ledger")
    assert [tuple(row) for row in ledger] == ([] if waiting else [(expected, target["end_reason"])])


def until(target: Any) -> Any:
    """Its deadline, by the step's twelve hours."""
    began = target["start_time"] or target["tried_at"]
    return pytest.approx(began.timestamp() + 43_200, abs=1e-5)


@pytest.mark.parametrize("lifecycle", ["Created", "WaitingForRetry"])
async def test_what_only_waited_for_us_keeps_its_deadline(execution, lifecycle):
    attempt = 1
    if lifecycle == "WaitingForRetry":
        await paused(execution)
        attempt = 2
    else:
        await execution.report(
            returns=[
                (await execution.reserve(1))[0] | {"wait_reason": "ServerFull", "pause_seconds": 1}
            ]
        )
    (key,) = await execution.reserve(1, attempt=attempt)
    await execution.told()

    await execution.report(returns=[key])

    (told,) = await execution.told()
    assert (told["lifecycle"], told["deadline"]) == (lifecycle, until(await execution.target(1)))


async def test_what_we_stopped_ourselves_does_not_count(execution, owner):
    await set_steps(owner, retry_attempts=1)
    outcomes = []

    for attempt, says in enumerate((AGAIN, RETRY, AGAIN | RETRY, RETRY), start=1):
        (key,) = await execution.started(1, attempt=attempt)
        assert (await execution.target(1))["wait_reason"] is None
        await execution.report(results=[key | FAILED | says])
        outcomes.append((await execution.target(1))["lifecycle"])

    assert outcomes == ["WaitingForRetry"] * 3 + ["Failed"]
    target = await execution.target(1)
    assert (target["attempts"], target["free_attempts"]) == (4, 2)


async def paused(execution, attempt: int = 1, **says) -> float:
    (key,) = await execution.started(1, attempt=attempt)
    await execution.report(results=[key | FAILED | (says or RETRY)])
    task, target = await execution.task(1, attempt), await execution.target(1)
    return (target["not_before"] - task["end_time"]).total_seconds()


async def test_pauses_grow_to_their_maximum(execution, owner):
    await set_steps(
        owner, options={"jitter": 0}, maximum_retry_interval_seconds=10,
        initial_retry_interval_seconds=2,
    )  # fmt: skip

    assert [await paused(execution, attempt) for attempt in (1, 2, 3, 4, 5)] == [2, 4, 8, 10, 10]


async def test_a_pause_is_stretched_by_chance_and_never_shortened(execution, owner):
    for options, most in (({}, 5), ({"jitter": 1}, 8)):
        await set_steps(
            owner, initial_retry_interval_seconds=4, options=options,
            retry_interval_backoff_multiplier=1.0,
        )  # fmt: skip
        first = (await execution.target(1))["attempts"] + 1
        pauses = [await paused(execution, attempt) for attempt in range(first, first + 5)]
        assert all(4 <= pause <= most for pause in pauses)
        assert len(set(pauses)) > 1


@pytest.mark.parametrize("multiplier", [1.0, 1.5, 1000.0])
async def test_no_number_of_attempts_is_too_large(execution, owner, multiplier):
    await set_steps(
        owner, retry_interval_backoff_multiplier=multiplier, retry_attempts=2147483,
        options={"jitter": 0}, initial_retry_interval_seconds=120,
    )  # fmt: skip

    assert await paused(execution, 2147483) == 120


async def test_what_we_stopped_ourselves_begins_again_at_once(execution):
    assert await paused(execution, **AGAIN) == 0


async def test_no_pause_outlasts_the_timeout(execution, owner):
    await set_steps(
        owner, timeout_seconds=7, maximum_retry_interval_seconds=100,
        initial_retry_interval_seconds=100,
    )  # fmt: skip
    await paused(execution)

    target = await execution.target(1)

    assert target["not_before"] == target["start_time"] + timedelta(seconds=7)
    (live,) = [
        r
        for r in await execution.ask("live_targets", EPOCH, execution.day, execution.run, 1)
        if r[0] == 1
    ]
    assert live["deadline"] == target["not_before"]


async def test_the_first_start_stays_while_attempts_go_on(execution):
    await paused(execution)
    first = await execution.target(1)

    await execution.started(1, attempt=2)

    second = await execution.target(1)
    assert (second["start_time"], second["attempts"]) == (first["start_time"], 2)
    assert second["attempt_start_time"] > first["attempt_start_time"]
    assert (second["not_before"], second["wait_reason"]) == (None, None)


async def test_a_reservation_returns_unburnt(execution):
    made = await execution.reserve(1)
    before = await execution.target(1)

    assert (
        await execution.report(returns=[made[0] | {"wait_reason": None, "pause_seconds": None}])
        == []
    )

    assert await execution.task(1) is None
    assert await execution.target(1) == before
    assert await execution.told() == [
        ITEM | {
            "invocation_id": made[0]["invocation_id"], "lifecycle": "Created", "kind": "release",
            "attempts": 0,
        }
    ]  # fmt: skip
    assert await execution.started(1)


@pytest.mark.parametrize("lifecycle", ["Created", "WaitingForRetry"])
async def test_a_full_server_makes_the_target_wait(execution, lifecycle):
    attempt = 1
    if lifecycle == "WaitingForRetry":
        await paused(execution)
        await execution.told()
        attempt = 2
    (key,) = await execution.reserve(1, attempt=attempt)

    await execution.report(returns=[key | {"wait_reason": "ServerFull", "pause_seconds": 2.5}])

    target = await execution.target(1)
    assert (target["lifecycle"], target["wait_reason"]) == (lifecycle, "ServerFull")
    assert (target["not_before"] - target["tried_at"]).total_seconds() == 2.5
    (told,) = await execution.told()
    assert (told["lifecycle"], told["kind"], told["attempts"]) == (
        lifecycle,
        "release",
        attempt - 1,
    )
    assert told["not_before"] == pytest.approx(target["not_before"].timestamp(), abs=1e-5)
    assert told["deadline"] == until(target)
    (again,) = await execution.reserve(1, attempt=attempt)
    await execution.report(returns=[again | {"wait_reason": "ServerFull", "pause_seconds": 1}])
    assert (await execution.target(1))["tried_at"] == target["tried_at"]
    (taken,) = await execution.ask("take", execution.host, 0) or [None]
    assert taken is None
    await execution.reserve(1, attempt=attempt)
    (taken,) = [row for row in await execution.ask("take", execution.host, 0)]
    assert (taken["tried_at"], taken["first_start"]) == (target["tried_at"], target["start_time"])


@pytest.mark.parametrize(
    ("column", "lifecycle"), [("tried_at", "Created"), ("start_time", "WaitingForRetry")]
)
async def test_a_server_that_stays_full_times_the_target_out(execution, owner, column, lifecycle):
    await set_steps(owner, timeout_seconds=60)
    attempt = 1
    if lifecycle == "WaitingForRetry":
        await paused(execution)
        attempt = 2
    await owner.execute(
        f"update jobs_internal.target_execution set {column} = now() - interval '50 seconds'"
    )
    (key,) = await execution.reserve(1, attempt=attempt)
    await execution.report(returns=[key | {"wait_reason": "ServerFull", "pause_seconds": 100}])
    waiting = await execution.target(1)
    await owner.execute(
        f"update jobs_internal.target_execution set {column} = now() - interval '61 seconds'"
    )
    await execution.told()
    (key,) = await execution.reserve(1, attempt=attempt)
    await execution.report(returns=[key | {"wait_reason": "ServerFull", "pause_seconds": 100}])

    assert waiting["lifecycle"] == lifecycle
    assert waiting["not_before"] == waiting[column] + timedelta(seconds=60)
    target = await execution.target(1)
    assert (target["lifecycle"], target["end_reason"]) == ("TimedOut", "ServerFull")
    assert (target["wait_reason"], target["not_before"]) == (None, None)
    said = "division by zero" if attempt == 2 else "Timed out before it started."
    assert target["last_message"] == said
    assert [(each["lifecycle"], each["not_before"]) for each in await execution.told()] == [
        ("TimedOut", None)
    ]


STARTING = {
    "wait_reason": "ServerStarting",
    "pause_seconds": 100,
    "message": "the database system is starting up",
}
BY_HOST, BY_CORE = "the host", "the core"


@pytest.mark.parametrize("found_by", [BY_HOST, BY_CORE])
async def test_what_the_server_said_is_kept_while_a_target_waits_and_at_its_end(
    execution, owner, found_by
):
    (key,) = await execution.reserve(1)
    await execution.report(returns=[key | STARTING])
    waiting = await execution.target(1)

    await owner.execute("update jobs_internal.target_execution set tried_at = '2001-01-01'")
    if found_by == BY_HOST:
        (key,) = await execution.reserve(1)
        await execution.report(
            returns=[key | {"wait_reason": "ServerConnections", "pause_seconds": 1}]
        )
    else:
        await execution.ask("time_out", EPOCH, execution.run, 1, [1])

    said = STARTING["message"]
    assert (waiting["wait_reason"], waiting["last_message"]) == ("ServerStarting", said)
    target = await execution.target(1)
    assert (target["lifecycle"], target["end_reason"]) == ("TimedOut", "ServerStarting")
    assert target["last_message"] == f"Timed out before it started: {said}"


async def test_a_retry_that_waited_for_us_too_long_is_timed_out_and_no_more(execution, owner):
    await paused(execution)
    (key,) = await execution.reserve(1, attempt=2)
    await owner.execute("update jobs_internal.target_execution set start_time = '2001-01-01'")

    await execution.report(returns=[key | {"wait_reason": "ServerConnections", "pause_seconds": 1}])

    target = await execution.target(1)
    assert (target["lifecycle"], target["end_reason"]) == ("TimedOut", "TimedOut")
    assert target["last_message"] == "division by zero"


async def test_what_the_server_said_is_forgotten_when_it_lets_us_in(execution):
    (key,) = await execution.reserve(1)
    await execution.report(returns=[key | STARTING])

    await execution.started(1)

    target = await execution.target(1)
    assert (target["lifecycle"], target["last_message"]) == ("InProgress", None)


async def test_waiting_targets_time_out_and_others_do_not(execution, owner):
    await paused(execution)
    await execution.reserve(2)
    early = await execution.ask("time_out", EPOCH, execution.run, 1, [1, 2, 3])
    await owner.execute(
        "update jobs_internal.target_execution set start_time = start_time - interval '2 days',"
        " tried_at = now() - interval '2 days'"
    )

    ended = await execution.ask("time_out", EPOCH, execution.run, 1, [1, 2, 3])
    again = await execution.ask("time_out", EPOCH, execution.run, 1, [1, 2, 3])

    assert (early, [row[0] for row in ended], again) == ([], [1, 3], [])
    rows = [await execution.target(ordinal) for ordinal in (1, 2, 3)]
    assert [row["lifecycle"] for row in rows] == ["TimedOut", "Created", "TimedOut"]
    assert {rows[0]["end_reason"], rows[2]["end_reason"]} == {"TimedOut"}
    assert rows[0]["last_message"] == (
        "Its time ran out before the next attempt. Last error: division by zero"
    )
    assert rows[2]["last_message"] == "Timed out before it started."


async def test_live_targets_are_those_that_are_not_over_with_what_they_have(execution, owner):
    await owner.execute(
        "update jobs_internal.snapshot_target set pool_name = 'p', schema_name = 's'"
    )
    await owner.execute("update jobs_internal.target_execution set worker_pool = 'gpu'")
    (done,) = await execution.started(1)
    await execution.report(results=[done | SUCCEEDED])
    (running,) = await execution.started(2)

    two, three = await execution.ask("live_targets", EPOCH, execution.day, execution.run, 1)

    began = (await execution.target(2))["start_time"]
    assert tuple(two) == (
        2, "InProgress", 1, None, began + timedelta(seconds=43200), "/servers/2", "p", "db2", "s",
        "gpu", 1, execution.host, two["invocation_id"], "InProgress", False,
    )  # fmt: skip
    assert str(two["invocation_id"]) == running["invocation_id"]
    assert tuple(three) == (
        3, "Created", 0, None, None, "/servers/3", "p", "db3", "s", "gpu", None, None, None, None, False,
    )  # fmt: skip
