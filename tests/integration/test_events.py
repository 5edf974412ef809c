"""Events of runs and schedules: complete, in order, and read without a gap; schedules that are disabled."""

import json
import secrets
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.support.effects import databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

RUN_EVENTS = """
select jobs_internal.list_events(x, jsonb_build_object('number', $2::bigint), 100)::text
  from jobs_internal.job_execution x where x.job_execution_id = $1
"""
DAY = timedelta(days=1)
NOW = datetime(2031, 1, 31, tzinfo=UTC)
POLICY = {"failures": 30, "days": 7, "warningFailures": 20, "warningDays": 4}


async def events_of(fleet: Fleet, run, after: int = 0) -> list[dict]:
    """Those of an ended run."""

    async def page():
        return json.loads(await fleet.root.fetchval(RUN_EVENTS, run, after))

    async def complete() -> bool:
        return (await page())["ended"]

    await until(complete)
    return (await page())["items"]


async def test_a_run_writes_each_change_once_and_in_order(databases: Fleet):
    run = await databases.run("select 1", "select 1/0", retry_attempts=0)

    events = await events_of(databases, run)

    kinds = [event["kind"] for event in events]
    assert [kind for kind in kinds if kind != "targetsEnded"] == [
        "runStarted", "stepStarted", "stepEnded", "stepStarted", "stepEnded", "runEnded",
    ]  # fmt: skip
    assert events[-1]["data"]["lifecycle"] == "Failed"
    counts: dict[tuple[int, str], int] = {}
    failures = []
    for event in events:
        if event["kind"] == "targetsEnded":
            for lifecycle, number in event["data"]["counts"].items():
                key = event["data"]["stepId"], lifecycle
                counts[key] = counts.get(key, 0) + number
            failures += event["data"].get("failures", [])
    number = len(databases.databases)
    assert counts == {(1, "Succeeded"): number, (2, "Failed"): number}
    assert {failure["databaseName"] for failure in failures} == set(databases.databases)
    assert {failure["sqlstate"] for failure in failures} == {"22012"}


async def test_a_reader_goes_on_after_the_last_number(databases: Fleet):
    run = await databases.run("select 1")
    events = await events_of(databases, run)

    rest = await events_of(databases, run, after=events[1]["number"])

    assert rest == events[2:]


async def test_waves_and_halts_are_events(databases: Fleet):
    rollout = {"waves": [1, "100%"], "haltAfterFailures": 1}
    name = f"job {secrets.token_hex(4)}"
    await databases.job(name, "select 1/0", options={"rollout": rollout}, retry_attempts=0)
    run = await databases.start(name)

    async def halted() -> bool:
        return [step["wait_reason"] for step in await databases.steps(run)] == ["Halted"]

    await until(halted)
    await databases.root.execute("select jobs.sp_resume_execution($1)", run)
    await databases.ended(run)

    events = await events_of(databases, run)
    steps = [event["data"] for event in events if "wave" in event["data"]]
    assert [step["wave"] for step in steps] == [1, 1, 1, 2, 2]
    assert {step.get("waves", 2) for step in steps} == {2}, "it is left out until it is known"
    kinds = [event["kind"] for event in events]
    assert [kind for kind in kinds if kind != "targetsEnded"] == [
        "runStarted", "stepStarted", "stepHalted", "stepResumed", "waveStarted", "stepEnded", "runEnded",
    ]  # fmt: skip


async def test_an_event_that_commits_late_is_not_skipped(databases: Fleet):
    """Its row is older than that of an event which was read before its transaction committed."""
    write = "insert into jobs_internal.outbox (kind, payload) values ($1, '{}') returning entry"
    read = "select number, kind from jobs_internal.event where kind like $1 order by number"
    mark = secrets.token_hex(4)
    late = await databases.account.connect("root")
    try:
        transaction = late.transaction()
        await transaction.start()
        first = await late.fetchval(write, f"{mark} late")
        second = await databases.root.fetchval(write, f"{mark} early")
        assert first < second

        async def published(number: int) -> bool:
            return len(await databases.root.fetch(read, f"{mark}%")) == number

        await until(lambda: published(1))
        await transaction.commit()
        await until(lambda: published(2))
    finally:
        await late.close()

    rows = await databases.root.fetch(read, f"{mark}%")
    assert [row["kind"] for row in rows] == [f"{mark} early", f"{mark} late"]


async def test_a_reader_of_an_account_that_was_restored_goes_on_with_new_events(databases: Fleet):
    """Its number is of the time after the backup."""
    await events_of(databases, await databases.run("select 1"))
    page = "select jobs_internal.list_events(null, jsonb_build_object('number', $1::bigint), 1)"

    found = json.loads(await databases.root.fetchval(page, 10**12))

    assert found["missed"]
    assert (found["items"], found["next"]) == ([], {"number": found["last"]})
    assert not json.loads(await databases.root.fetchval(page, found["last"]))["missed"]


async def test_expired_events_are_deleted_and_a_reader_learns_that(databases: Fleet):
    await events_of(databases, await databases.run("select 1"))
    counter = await databases.root.fetchrow("select * from jobs_internal.event_counter")
    await databases.root.execute(
        "update jobs_internal.event set created_at = created_at - interval '8 days' where number <= 2"
    )
    epoch = await databases.root.fetchval("select epoch from jobs_internal.instance")

    await databases.root.execute("select jobs_internal.prune_events($1, 7, 500000)", epoch)

    numbers = "select min(number) from jobs_internal.event"
    assert await databases.root.fetchval(numbers) > 2
    page = "select jobs_internal.list_events(null, jsonb_build_object('number', $1::bigint), 1)"
    for after, missed in ((1, True), (2, False), (counter["last_number"] + 10**6, True)):
        assert json.loads(await databases.root.fetchval(page, after))["missed"] is missed


@pytest.mark.parametrize(
    ("failures", "days", "warned", "decision"),
    [
        (30, 6, True, None),
        (30, 7, True, "disable"),
        (29, 7, True, None),
        (19, 4, False, None),
        (20, 3.9, False, None),
        (20, 4, False, "warn"),
        (21, 5, True, None),
        (30, 7, False, "disable"),
    ],
)
@pytest.mark.parametrize("policy", [POLICY, {}], ids=["given", "default"])
async def test_check_58_a_schedule_is_disabled_by_failures_and_time(
    databases: Fleet, policy, failures, days, warned, decision
):
    answer = await databases.root.fetchval(
        "select jobs_internal.auto_disable_decision($1, $2, $3, $4, $5)",
        json.dumps(policy), failures, NOW - days * DAY, NOW, warned,
    )  # fmt: skip

    assert answer == decision


async def failing_job(fleet: Fleet, policy) -> str:
    """With a schedule that is not due."""
    name = f"job {secrets.token_hex(4)}"
    await fleet.job(name, "select 1/0", retry_attempts=0)
    await fleet.call(
        "sp_update_job", job_name=name, enabled=True, schedule_cron="0 0 1 1 *",
        auto_disable=policy,
    )  # fmt: skip
    return name


async def history(fleet: Fleet, name: str, failures: int, days: float) -> None:
    """As if so many runs had failed since so many days."""
    await fleet.root.execute(
        "update jobs_internal.job_health set failures = $2, since = clock_timestamp() - $3::interval"
        " where job_id = (select job_id from jobs.jobs where job_name = $1)",
        name, failures, timedelta(days=days),
    )  # fmt: skip


async def job_shown(fleet: Fleet, name: str) -> dict:
    text = await fleet.root.fetchval("select jobs_internal.get_item('jobs', array[$1])::text", name)
    return json.loads(text)["properties"]


async def notices(fleet: Fleet, name: str) -> list[str]:
    rows = await fleet.root.fetch(
        "select kind from jobs_internal.event where kind like 'autoDisable%' and payload ->> 'jobName' = $1"
        " union all"
        " select kind from jobs_internal.outbox where kind like 'autoDisable%' and payload ->> 'jobName' = $1",
        name,
    )
    return sorted(row["kind"] for row in rows)


async def test_check_58_one_warning_one_notice_and_enabling_counts_again(databases: Fleet):
    name = await failing_job(databases, POLICY)

    async def fail_once() -> None:
        assert await databases.ended(await databases.start(name)) == "Failed"

    await fail_once()
    await history(databases, name, 19, 4)
    await fail_once()
    await fail_once()
    assert await notices(databases, name) == ["autoDisableWarning"]
    await history(databases, name, 29, 6)
    await fail_once()
    assert (await job_shown(databases, name))["schedule"]["enabled"] is True
    await history(databases, name, 29, 7)
    await fail_once()

    shown = await job_shown(databases, name)
    assert shown["schedule"]["enabled"] is False
    assert "30 runs in a row failed" in shown["health"]["disabledReason"]
    await fail_once()
    assert await notices(databases, name) == ["autoDisableWarning", "autoDisabled"]

    await databases.call("sp_update_job", job_name=name, enabled=True)
    assert "health" not in await job_shown(databases, name)
    await fail_once()
    shown = await job_shown(databases, name)
    assert shown["schedule"]["enabled"] is True and shown["health"]["failuresInARow"] == 1


async def test_check_58_a_success_starts_again_from_zero(databases: Fleet):
    name = await failing_job(databases, {"failures": 2, "days": 0})
    assert await databases.ended(await databases.start(name)) == "Failed"
    await databases.call("sp_update_jobstep", job_name=name, step_name="step1", command="select 1")
    assert await databases.ended(await databases.start(name)) == "Succeeded"
    await databases.call(
        "sp_update_jobstep", job_name=name, step_name="step1", command="select 1/0"
    )
    assert await databases.ended(await databases.start(name)) == "Failed"

    shown = await job_shown(databases, name)
    assert shown["schedule"]["enabled"] is True and shown["health"]["failuresInARow"] == 1


async def test_check_58_a_job_without_a_policy_has_that_of_the_account(databases: Fleet):
    name = await failing_job(databases, None)
    never = await failing_job(databases, {"failures": 0})
    await databases.root.execute(
        """update jobs_internal.instance set auto_disable = '{"failures": 1, "days": 0}'"""
    )
    try:
        for job in (name, never):
            assert await databases.ended(await databases.start(job)) == "Failed"
    finally:
        await databases.root.execute("update jobs_internal.instance set auto_disable = null")

    assert (await job_shown(databases, name))["schedule"]["enabled"] is False
    assert (await job_shown(databases, never))["schedule"]["enabled"] is True


async def test_a_wrong_policy_is_refused(databases: Fleet):
    for wrong in ({"failures": "many"}, {"failure": 1}, {"failures": 1.5}, {"days": 366}):
        with pytest.raises(asyncpg.PostgresError, match="auto_disable"):
            await databases.call("sp_add_job", job_name="never made", auto_disable=wrong)


async def test_missed_and_late_slots_are_one_event_for_each_job(databases: Fleet):
    name = f"job {secrets.token_hex(4)}"
    await databases.job(name, "select 1")
    job = await databases.root.fetchval("select job_id from jobs.jobs where job_name = $1", name)
    await databases.root.execute(
        "insert into jobs_internal.slot (job_id, slot, outcome, reason)"
        " select $1, clock_timestamp() - n * interval '1 hour', 'missed', 'Late' from generate_series(1, 3) n",
        job,
    )
    await databases.root.execute(
        "insert into jobs_internal.slot (job_id, slot, outcome, job_execution_id, decided_at)"
        " values ($1, '2031-01-01', 'fired', gen_random_uuid(), '2031-01-01 00:00:59'),"
        "        ($1, '2031-01-02', 'fired', gen_random_uuid(), '2031-01-02 00:01:01')",
        job,
    )

    async def published():
        rows = await databases.root.fetch(
            "select kind, notifications, payload from jobs_internal.event where job_id = $1 order by number",
            job,
        )
        return len(rows) == 2 and rows

    missed, late = await until_value(published)
    assert (missed["kind"], missed["notifications"]) == ("slotMissed", ["missed"])
    assert json.loads(missed["payload"])["count"] == 3
    assert (late["kind"], late["notifications"]) == ("slotLate", ["late"])
    assert json.loads(late["payload"])["lateSeconds"] == 61


async def until_value(read):
    await until(read)
    return await read()
