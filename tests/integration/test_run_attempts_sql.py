"""What the control database holds of the attempts of runs: their moves, their counters, and what it refuses."""

import asyncio
import itertools
import json
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from muster.core import schedule as schedules
from muster.core.interval import IntervalType
from muster.core.schedule import Schedule, ScheduleType
from tests.support.executions import EPOCH, a_job, a_run, end
from tests.support.execution_fixture import (
    FAILED,
    SUCCEEDED,
    Q,
    ExecutionFixture,
    a_host,
    another_run,
)

pytestmark = pytest.mark.newest

RULES = {"enabled": True}
RUN_STATES = {  # of the documented machine
    "pending": "Created", "running": "WaitingForChildJobExecutions", "incomplete": "WaitingForRetry",
    "succeeded": "Succeeded", "failed": "Failed", "cancelled": "Canceled",
}  # fmt: skip
RUN_MOVES = {
    ("pending", "running"), ("running", "incomplete"), ("incomplete", "running"), ("running", "succeeded"),
    *itertools.product(["pending", "running", "incomplete"], ["failed", "cancelled"]),
}  # fmt: skip
ATTEMPT_STATES = {"running": "InProgress", "succeeded": "Succeeded", "failed": "Failed"}
ATTEMPT_MOVES = {("running", "succeeded"), ("running", "failed")}
ENDED = {"Succeeded", "Failed", "Canceled"}


@pytest.fixture
async def job(owner):
    job = await a_job(owner)
    await owner.execute("update jobs_internal.job set run_attempts = $1", json.dumps(RULES))
    return job


@pytest.fixture
async def execution(owner, engine, job):
    """A run with attempts, in its first one, with three targets."""
    return await another_run(owner, engine, job, await a_host(engine), targets=3)


async def attempts(execution: ExecutionFixture):
    return await execution.owner.fetch(
        "select * from jobs_internal.run_attempt where job_execution_id = $1 order by number",
        execution.run,
    )


async def outcome(execution: ExecutionFixture):
    (row,) = await execution.ask("attempt_outcome", EPOCH, execution.run)
    return row["earlier"], row["newly_succeeded"], row["remaining"]


async def report(execution: ExecutionFixture, *ends, attempt=1):
    """An end for each target: succeeded, may be repeated, or failed for good."""
    results = {"ok": SUCCEEDED, "again": FAILED | {"retry": True}, "no": FAILED}
    ordinals = [place for place, each in enumerate(ends, 1) if each]
    keys = await execution.started(*ordinals, attempt=attempt)
    wanted = [results[each] for each in ends if each]
    assert await execution.report(results=[k | r for k, r in zip(keys, wanted, strict=True)]) == []


async def wait(execution: ExecutionFixture, newly=0, remaining=3, due=0.0):
    return await execution.value(
        "wait_for_attempt", EPOCH, execution.run, newly, remaining, due, ""
    )


@pytest.fixture
async def no_retries(owner, execution):
    """Targets end with their first failure."""
    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    await owner.execute("update jobs_internal.job_step set retry_attempts = 0")
    await owner.execute("alter table jobs_internal.job_step enable trigger user")


async def moved(owner, table: str, states: dict[str, str], run) -> set[tuple[str, str]]:
    """The moves that the table takes, tried from each state to each other one."""
    taken = set()
    update = (
        f"update jobs_internal.{table} set lifecycle = $2,"
        " end_time = case when $3 then clock_timestamp() end where job_execution_id = $1"
    )
    for old, new in itertools.permutations(states, 2):
        transaction = owner.transaction()
        await transaction.start()
        await owner.execute("set constraints all deferred")
        await owner.execute(f"alter table jobs_internal.{table} disable trigger user")
        await owner.execute(update, run, states[old], states[old] in ENDED)
        await owner.execute(f"alter table jobs_internal.{table} enable trigger user")
        try:
            await owner.execute(update, run, states[new], states[new] in ENDED)
            taken.add((old, new))
        except asyncpg.PostgresError as error:
            assert error.sqlstate == "MU013", error
        await transaction.rollback()
    return taken


async def test_check_40_a_run_and_its_attempts_make_only_the_documented_moves(execution):
    owner, run = execution.owner, execution.run
    await owner.execute("update jobs_internal.run_attempt set newly_succeeded = 0")

    assert await moved(owner, "job_execution", RUN_STATES, run) == RUN_MOVES
    assert await moved(owner, "run_attempt", ATTEMPT_STATES, run) == ATTEMPT_MOVES


@pytest.mark.deep
async def test_check_41_of_twenty_concurrent_starts_one_run_begins(account, owner, job):
    await owner.execute("update jobs_internal.job set overlap = 'skipExecution'")
    sessions = [await account.connect("engine") for _ in range(4)]
    runs = [await a_run(owner, job) for _ in range(20)]

    async def begin(place: int) -> list[str]:
        return [await sessions[place].fetchval(Q.begin_run, EPOCH, run) for run in runs[place::4]]

    replies = sum(await asyncio.gather(*map(begin, range(4))), [])

    for session in sessions:
        await session.close()
    assert sorted(replies) == ["Begun"] + ["Skipped"] * 19
    rows = await owner.fetch("select end_reason from jobs.job_executions where not is_active")
    assert [row["end_reason"] for row in rows] == ["Overlap"] * 19


async def test_check_42_of_two_concurrent_attempts_one_begins(account, execution, no_retries):
    await report(execution, "again", "again", "again")
    assert await wait(execution) == "waits"
    sessions = [await account.connect("engine") for _ in range(2)]

    begun = await asyncio.gather(
        *(session.fetchval(Q.begin_attempt, EPOCH, execution.run) for session in sessions)
    )

    for session in sessions:
        await session.close()
    assert sorted(begun) == [False, True]
    assert [row["lifecycle"] for row in await attempts(execution)] == ["Failed", "InProgress"]
    for number in (2, 3, 4):
        with pytest.raises(asyncpg.PostgresError) as caught:
            await execution.owner.execute(
                "insert into jobs_internal.run_attempt (job_execution_id, number) values ($1, $2)",
                execution.run, number,
            )  # fmt: skip
        assert caught.value.sqlstate in {"MU013", "23505"}


async def test_check_43_a_commit_that_won_against_a_cancellation_is_a_success(execution):
    """Decided otherwise than the check: run and attempt say what the targets did."""
    keys = await execution.started(1, 2, 3)
    await execution.owner.execute("select jobs.sp_stop_job($1)", execution.run)
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, None)

    await execution.report(results=[key | SUCCEEDED for key in keys])
    await execution.ask("end_last_step", EPOCH, execution.run, 1)

    assert (await execution.row())["lifecycle"] == "Succeeded"
    (attempt,) = await attempts(execution)
    assert (attempt["lifecycle"], attempt["newly_succeeded"]) == ("Succeeded", 3)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("ends", "progress"),
    [
        (("again", "again", "again"), (0, 3)),  # scripts ran and were rolled back
        (("ok", "again", "again"), (1, 2)),
        (("ok", "no", "again"), (1, 1)),
        (("no", "no", "no"), (0, 0)),
    ],
)
async def test_check_47_only_targets_that_newly_succeeded_are_progress(
    execution, no_retries, ends, progress
):
    await report(execution, *ends)

    assert await outcome(execution) == ([], *progress)


@pytest.mark.deep
async def test_progress_is_counted_from_zero_in_each_attempt(execution, no_retries):
    await report(execution, "ok", "again", "again")
    await wait(execution, 1, 2)
    assert await execution.value("begin_attempt", EPOCH, execution.run) is True
    assert (await execution.target(1))["lifecycle"] == "Succeeded"
    retried = await execution.target(2)
    assert (retried["lifecycle"], retried["attempts"], retried["free_attempts"]) == (
        "Created",
        1,
        1,
    )

    await report(execution, None, "ok", "again", attempt=2)

    assert await outcome(execution) == ([1], 1, 1)


@pytest.mark.deep
async def test_check_51_what_a_lost_host_left_ends_and_a_new_run_begins(execution, no_retries):
    """No runner is left at the start of an engine: its attempts end as HostLost, those of the run count."""
    owner, engine = execution.owner, execution.engine
    await owner.execute("update jobs_internal.job set overlap = 'skipExecution'")
    keys = await execution.started(1, 2, 3)
    rows = await execution.ask("disown", EPOCH, execution.host)
    lost = [k | {"invocation_id": str(r["invocation_id"])} for k, r in zip(keys, rows, strict=True)]

    unknown = FAILED | {"reason": "OutcomeUnknown", "last_message": "Its host was lost."}
    await execution.value("settle", EPOCH, json.dumps([each | unknown for each in lost]))

    assert await outcome(execution) == ([], 0, 0), "an unknown outcome is not repeated"
    await execution.ask("end_last_step", EPOCH, execution.run, 1)
    assert (await execution.row())["end_reason"] == "OutcomeUnknown"
    assert [row["lifecycle"] for row in await attempts(execution)] == ["Failed"]
    other = await a_run(owner, execution.job)
    assert await engine.fetchval(Q.begin_run, EPOCH, other) == "Begun"


@pytest.mark.deep
async def test_check_56_an_hourly_job_runs_each_hour_and_at_once_after_a_long_run(owner, engine):
    created = datetime(2026, 3, 2, 13, 6, tzinfo=UTC)
    hourly = Schedule(
        type=ScheduleType.RECURRING,
        enabled=True,
        interval_type=IntervalType.HOURS,
        interval_count=1,
    )
    due = schedules.slots(hourly, anchor=created, until=created + timedelta(hours=2))
    assert [each.hour * 100 + each.minute for each in due] == [1306, 1406, 1506]

    job = await a_job(owner)
    await owner.execute("update jobs_internal.job set overlap = 'queueOne'")
    first, second = await a_run(owner, job), await a_run(owner, job)
    assert await engine.fetchval(Q.begin_run, EPOCH, first) == "Begun"
    assert await engine.fetchval(Q.begin_run, EPOCH, second) == "Queued", "the first one takes long"
    await end(owner, first)
    assert await engine.fetchval(Q.begin_run, EPOCH, second) == "Begun", "at once when it is done"


DISAGREEING = {
    "update jobs_internal.job_execution set lifecycle = 'WaitingForRetry'": "MU013",
    "update jobs_internal.run_attempt set lifecycle = 'Failed', end_time = now()": "23514",
    "update jobs_internal.run_attempt set end_time = now(), newly_succeeded = 0": "23514",
    "update jobs_internal.run_attempt set next_start_time = now()": "23514",
    "update jobs_internal.run_attempt set reached_limit = 'noLimit'": "23514",
}


async def test_run_and_attempt_agree_whatever_is_written(execution):
    """A run that waits has no running attempt, and a run in progress has one: checked at commit."""
    for change, refused in DISAGREEING.items():
        with pytest.raises(asyncpg.PostgresError) as caught:
            await execution.owner.execute(change)
        assert caught.value.sqlstate == refused, change


async def test_an_attempt_waits_only_when_every_target_has_ended(execution, no_retries):
    await report(execution, "again", "again", None)
    assert await wait(execution) == "unfinished"
    await execution.ask("cancel_targets", EPOCH, execution.run, 1, [3])
    assert await wait(execution) == "waits"
    assert await wait(execution) == "waits", "repeating the call is harmless"

    await execution.owner.execute("select jobs.sp_stop_job($1)", execution.run)

    assert await execution.value("begin_attempt", EPOCH, execution.run) is False
    assert (await execution.target(3))["lifecycle"] == "Canceled"


async def test_a_run_is_shown_with_its_attempts(execution, no_retries):
    await report(execution, "again", "no", "ok")
    await wait(execution, 1, 1, due=4102444800.0)

    shown = json.loads(
        await execution.owner.fetchval(
            "select jobs_internal.run_item(x) -> 'properties' from jobs_internal.job_execution x"
        )
    )
    summary = json.loads(
        await execution.owner.fetchval(
            "select jobs_internal.summarize_run(x) -> 'summary' from jobs_internal.job_execution x"
        )
    )

    (attempt,) = shown["runAttempts"]
    assert (shown["lifecycle"], shown["waitReason"]) == ("WaitingForRetry", "NextRunAttempt")
    assert (shown["currentAttempts"], shown["provisioningState"]) == (1, "InProgress")
    assert shown["nextAttemptTime"] == attempt["nextAttemptTime"] == "2100-01-01T00:00:00Z"
    assert (attempt["newlySucceeded"], attempt["remaining"]) == (1, 1)
    assert (summary["attempt"], summary["runAttempts"]) == (1, shown["runAttempts"])
    row = await execution.owner.fetchrow(
        "select current_attempts, next_attempt_start_time from jobs.job_executions where step_id is null"
    )
    assert tuple(row) == (1, datetime(2100, 1, 1, tzinfo=UTC))


@pytest.mark.deep
async def test_a_cancelled_run_does_not_wait(execution, no_retries):
    await report(execution, "again", "again", "again")
    await execution.owner.execute("select jobs.sp_stop_job($1)", execution.run)

    assert await wait(execution) == "stopped"


async def test_a_target_that_waits_for_the_next_attempt_says_so(execution, no_retries):
    await report(execution, "again", "no", "ok")
    await wait(execution, 1, 1, due=4102444800.0)
    ids = await execution.owner.fetch(
        "select d.ordinal, d.target_id from jobs_internal.snapshot_target d order by 1"
    )

    async def why(place: int):
        text = await execution.owner.fetchval(
            "select jobs_internal.explain_target(x, 'step1', $2) from jobs_internal.job_execution x"
            " where x.job_execution_id = $1",
            execution.run, str(ids[place]["target_id"]),
        )  # fmt: skip
        return json.loads(text)["why"]

    waiting, ended = await why(0), await why(1)
    assert waiting["waitReason"] == "NextRunAttempt"
    assert waiting["message"] == (
        "It ended as Failed; attempt 2 of the run takes it again at 2100-01-01T00:00:00Z. division by zero"
    )
    assert ended.get("waitReason") is None


WRONG = [
    ([1], "JSON object"),
    ({"maxWithProgress": 1}, "enabled"),
    ({"enabled": "yes"}, "enabled"),
    ({"enabled": False, "maxWithProgress": 1}, "no other fields"),
    ({"enabled": True, "maxWithProgress": 0}, "run_attempts.maxWithProgress is a number from 1"),
    ({"enabled": True, "maxWithoutProgress": 2.5}, "maxWithoutProgress is a number"),
    ({"enabled": True, "backoffSeconds": []}, "backoffSeconds is a list"),
    ({"enabled": True, "backoffSeconds": [-1]}, "backoffSeconds is a list"),
    ({"enabled": True, "backoffSeconds": [86401]}, "backoffSeconds is a list"),
    ({"enabled": True, "attempts": 3}, 'no field "attempts"'),
]


async def test_rules_are_checked_in_sql_too(owner):
    for rules, part in WRONG:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await owner.execute(
                "select jobs.sp_add_job('checked', run_attempts => $1)", json.dumps(rules)
            )
        assert (caught.value.sqlstate, caught.value.column_name) == ("MU012", "run_attempts")
        assert part in str(caught.value)


@pytest.mark.deep
async def test_rules_are_changed_and_removed_by_sql(owner):
    rules = {"enabled": True, "backoffSeconds": [1, 2]}
    await owner.execute("select jobs.sp_add_job('nightly', run_attempts => $1)", json.dumps(rules))
    read = "select run_attempts from jobs.jobs"
    assert json.loads(await owner.fetchval(read)) == rules

    await owner.execute("select jobs.sp_update_job('nightly', description => 'x')")
    assert json.loads(await owner.fetchval(read)) == rules
    await owner.execute("select jobs.sp_update_job('nightly', run_attempts => 'null')")
    assert await owner.fetchval(read) is None


async def test_an_event_shows_a_failure_that_the_next_attempt_has_taken_back(execution, no_retries):
    await report(execution, "ok", "again", "no")
    await wait(execution, 1, 1)
    await execution.value("begin_attempt", EPOCH, execution.run)

    await execution.owner.fetchval("select jobs_internal.publish_events($1, 1000)", EPOCH)

    text = await execution.owner.fetchval(
        "select payload ->> 'failures' from jobs_internal.event where kind = 'targetsEnded'"
    )
    shown = [(each["lifecycle"], each["endReason"], each["attempts"]) for each in json.loads(text)]
    assert shown == [("Failed", "StatementFailed", 1)] * 2
