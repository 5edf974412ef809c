"""Schedules are followed on a real control database: each slot once, whoever is in charge and whatever breaks."""

import asyncio
import contextlib
from datetime import timedelta
from uuid import UUID

import pytest

from engine.core.listener import Listener
from engine.process.exit_codes import Fenced
from engine.core.scheduler import Q, Scheduler
from tests.support.definitions import a_definer, a_step, some_steps
from tests.support.launching import until
from tests.support.core_services import a_store, core_context, running

pytestmark = [pytest.mark.newest, pytest.mark.deep]

SLOTS = "select slot, outcome, reason, job_execution_id from jobs.job_slots where job_name = $1 order by slot"
RUNS = "select origin, slot, actor, door, job_version, lifecycle from jobs.job_executions where job_name = $1"


@pytest.fixture
async def scheduler(account):
    async with a_scheduler(account, 1) as service:
        yield service


@contextlib.asynccontextmanager
async def a_scheduler(account, epoch: int, **more):
    async with a_store(account, epoch) as store:
        yield Scheduler(core_context(account, store, **more))


async def a_job(
    admin, name: str = "nightly", *, steps: tuple[str, ...] = ("a",), **schedule
) -> UUID:
    """With a schedule that is enabled."""
    await some_steps(admin, *steps, job=name)
    await admin.call("sp_update_job", job_name=name, enabled=True, **schedule)
    return await admin.value("select job_id from jobs.jobs where job_name = $1", name)


async def since(account, name: str, ago: str, **columns: str) -> None:
    """As if the schedule had been enabled so long ago and nobody had looked for some time."""
    more = "".join(f", {column} = {value}" for column, value in columns.items())
    await account.execute(
        f"update jobs_internal.job set scheduled_since = clock_timestamp() - interval '{ago}',"
        f" next_slot = clock_timestamp() - interval '1 s'{more} where name = '{name}'"
    )


async def told(admin, name: str = "nightly") -> list[tuple]:
    return [(row[1], row[2]) for row in await admin.rows(SLOTS, name)]


# Firing


async def test_a_due_slot_has_a_run_of_the_current_version(account, admin, scheduler):
    await a_job(admin, steps=("a", "b"), schedule_interval_type="Hours")
    await since(account, "nightly", "1 h 10 s")

    await scheduler.run_once()

    rows = await admin.rows(SLOTS, "nightly")
    assert [row[1:3] for row in rows] == [("missed", "Late"), ("fired", None)]
    runs = await admin.rows(RUNS, "nightly")
    assert runs == [("slot", rows[1][0], "schedule", "engine", 2, "Created")]
    known = await admin.value("select job_execution_id from jobs.job_executions")
    assert rows[1][3] == known
    next_slot = await admin.value("select next_slot from jobs.jobs")
    assert next_slot == rows[1][0] + timedelta(hours=1)


async def test_looking_again_changes_nothing(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Minutes")
    await since(account, "nightly", "10 min 5 s")
    await scheduler.run_once()
    before = await admin.rows(SLOTS, "nightly")

    for _ in range(3):
        await account.execute("update jobs_internal.job set next_slot = null")
        await scheduler.run_once()

    assert await admin.rows(SLOTS, "nightly") == before
    assert len(await admin.rows(RUNS, "nightly")) == 1


async def test_a_schedule_of_now_fires_at_once_and_then_waits_for_its_interval(admin, scheduler):
    await a_job(admin, schedule_interval_type="Hours", schedule_interval_count=2)

    await scheduler.run_once()
    await scheduler.run_once()

    assert await told(admin) == [("fired", None)]
    assert scheduler.pause == scheduler.context.heartbeat  # nothing comes sooner


async def test_a_disabled_or_deleted_job_never_fires(account, admin, scheduler):
    await a_job(admin, "off", schedule_interval_type="Minutes")
    await admin.call("sp_update_job", job_name="off", enabled=False)
    await a_job(admin, "gone", schedule_interval_type="Minutes")
    await admin.call("sp_delete_job", job_name="gone")

    await scheduler.run_once()

    assert await account.fetch("select from jobs_internal.slot") == []


async def test_once_in_the_past_fires_once_and_disables_itself(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")
    before = await admin.value("select row_version from jobs.jobs")

    for _ in range(3):
        await scheduler.run_once()

    assert await told(admin) == [("fired", None)]
    row = await admin.rows(
        "select enabled, next_slot, modified_by, row_version > $1 from jobs.jobs", before
    )
    assert row == [(False, None, "schedule", True)]


async def test_once_fires_anew_when_it_is_enabled_anew(admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")
    await scheduler.run_once()

    await admin.call("sp_update_job", job_name="nightly", enabled=True)
    await scheduler.run_once()

    assert await told(admin) == [("fired", None)] * 2


async def test_once_that_was_too_late_is_missed_and_disabled(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")
    await since(account, "nightly", "25 h")

    await scheduler.run_once()
    await scheduler.run_once()

    assert await told(admin) == [("missed", "Late")]
    assert await admin.rows("select enabled, next_slot from jobs.jobs") == [(False, None)]


async def test_three_hours_down_fire_once(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Minutes")
    await since(account, "nightly", "3 h 3 s")

    await scheduler.run_once()

    outcomes = await told(admin)
    assert outcomes == [("missed", "Late")] * 180 + [("fired", None)]
    assert len(await admin.rows(RUNS, "nightly")) == 1


async def test_a_new_day_has_room_for_its_runs(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")

    await scheduler.run_once()

    made = await account.fetch(
        "select to_regclass('jobs_internal.task_' || to_char(now() at time zone 'UTC', 'YYYYMMDD'))"
    )
    assert made[0][0] is not None


# Refusals


async def test_what_may_not_start_is_skipped_with_the_reason(account, admin, scheduler):
    await a_job(admin, "bare", steps=(), schedule_interval_type="Hours")
    await a_job(admin, "held", schedule_interval_type="Hours")
    await admin.call("sp_update_job", job_name="held", paused=True)

    await scheduler.run_once()

    assert await told(admin, "bare") == [("skipped", "NoSteps")]
    assert await told(admin, "held") == [("skipped", "JobPaused")]
    assert await admin.rows(RUNS, "held") == []


async def test_slots_of_a_paused_account_are_skipped_and_do_not_come_back(admin, scheduler):
    await a_job(admin, "often", schedule_interval_type="Minutes")
    await admin.call("sp_pause")

    await scheduler.run_once()
    await admin.call("sp_resume")
    await scheduler.run_once()

    assert await told(admin, "often") == [("skipped", "AccountPaused")]


# A Once that can't start yet


async def held(admin, why: str) -> None:
    """A Once that is due, and what keeps it from starting."""
    await a_job(admin, steps=() if why == "NoSteps" else ("a",), schedule_interval_type="Once")
    if why == "AccountPaused":
        await admin.call("sp_pause")
    if why == "JobPaused":
        await admin.call("sp_update_job", job_name="nightly", paused=True)


async def freed(admin, why: str) -> None:
    match why:
        case "AccountPaused":
            await admin.call("sp_resume")
        case "JobPaused":
            await admin.call("sp_update_job", job_name="nightly", paused=False)
        case "NoSteps":
            await a_step(admin, "a")


HELD = pytest.mark.parametrize("why", ["AccountPaused", "JobPaused", "NoSteps"])


@HELD
async def test_once_fires_as_soon_as_nothing_holds_it(admin, scheduler, why):
    await held(admin, why)
    await scheduler.run_once()
    assert await told(admin) == [] and await admin.value("select enabled from jobs.jobs")

    await freed(admin, why)
    await scheduler.run_once()

    assert await told(admin) == [("fired", None)]
    assert await admin.value("select enabled from jobs.jobs") is False


@HELD
async def test_once_that_is_held_is_looked_at_once_a_minute(admin, scheduler, why):
    await held(admin, why)

    await scheduler.run_once()

    left = await admin.value("select next_slot - clock_timestamp() from jobs.jobs")
    assert timedelta(seconds=30) < left <= timedelta(seconds=60)
    async with scheduler.context.store.calling() as tx:
        assert await tx.fetch(Q.due_jobs, 1, 10) == []


@HELD
async def test_once_that_was_held_too_long_is_missed_for_that_and_disabled(
    account, admin, scheduler, why
):
    await held(admin, why)
    await scheduler.run_once()
    await since(account, "nightly", "25 h")

    await scheduler.run_once()
    await freed(admin, why)
    await scheduler.run_once()

    assert await told(admin) == [("missed", why)]
    assert await admin.value("select enabled from jobs.jobs") is False


async def test_an_account_that_is_going_decides_nothing(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")
    await account.execute("update jobs_internal.instance set draining = true")

    await scheduler.decide_due()
    async with a_scheduler(account, 2, draining=True) as knowing:
        await knowing.run_once()

    assert await account.fetch("select from jobs_internal.slot") == []
    assert knowing.status == "draining"


# Edits


async def test_an_edit_between_reading_and_deciding_wins(account, admin, scheduler, monkeypatch):
    await a_job(admin, schedule_interval_type="Hours")
    record = scheduler._record

    async def edited_first(batch):
        monkeypatch.setattr(scheduler, "_record", record)
        await admin.call("sp_update_job", job_name="nightly", enabled=False)
        return await record(batch)

    monkeypatch.setattr(scheduler, "_record", edited_first)
    await scheduler.run_once()
    await scheduler.run_once()

    assert await admin.rows(SLOTS, "nightly") == []


async def test_a_job_that_somebody_holds_is_passed_over_and_the_others_go_on(
    account, admin, scheduler
):
    for name in ("held", "free"):
        await a_job(admin, name, schedule_interval_type="Once")

    async with a_definer(account) as other, other.connection.transaction():
        await other.call("sp_update_job", job_name="held", description="in the middle of it")
        await scheduler.run_once()
        assert await told(admin, "free") == [("fired", None)] and await told(admin, "held") == []
    await scheduler.run_once()

    assert await told(admin, "held") == [("fired", None)]


async def test_a_later_schedule_fires_for_nothing_before_it(account, admin, scheduler):
    await a_job(admin, schedule_cron="0 0 1 1 *")
    await scheduler.run_once()

    await admin.call("sp_update_job", job_name="nightly", schedule_interval_type="Minutes")
    await scheduler.run_once()

    rows = await admin.rows(SLOTS, "nightly")
    assert [row[1] for row in rows] == ["fired"]
    changed = await account.fetch("select scheduled_since from jobs_internal.job")
    assert rows[0][0] == changed[0][0]


async def test_slots_that_a_wrong_clock_decided_stand_in_the_way_of_no_edit(
    account, admin, scheduler
):
    job = await a_job(admin, schedule_cron="0 0 1 1 *")
    await account.fetch(
        "insert into jobs_internal.slot (job_id, slot, outcome) values ($1, now() + interval '1 year', 'missed')", job
    )  # fmt: skip

    await admin.call("sp_update_job", job_name="nightly", schedule_interval_type="Hours")
    await scheduler.run_once()

    assert [row[0] for row in await told(admin)] == ["fired", "missed"]


# Broken schedules


async def test_a_schedule_that_cannot_be_followed_is_told_and_stops_nobody(
    account, admin, scheduler
):
    await a_job(admin, "bad", schedule_cron="0 0 30 2 *")
    await a_job(admin, "good", schedule_interval_type="Hours")

    await scheduler.run_once()

    assert await told(admin, "good") == [("fired", None)] and await told(admin, "bad") == []
    notes = await account.fetch(
        "select detail ->> 'job_name', detail ->> 'why' from jobs_internal.audit where action = 'break_schedule'"
    )
    assert [row[0] for row in notes] == ["bad"] and "never have" in notes[0][1]
    async with scheduler.context.store.calling() as tx:
        assert await tx.fetch(Q.due_jobs, 1, 10) == []

    await admin.call("sp_update_job", job_name="bad", schedule_interval_type="Hours")
    await scheduler.run_once()
    assert await told(admin, "bad") == [("fired", None)]


async def test_times_that_no_calendar_has_break_only_themselves(account, admin, scheduler):
    await a_job(admin, "odd", schedule_interval_type="Days")
    await a_job(admin, "good", schedule_interval_type="Hours")
    await account.execute(
        "update jobs_internal.job set schedule_start_time = '4000-01-01 BC', schedule_end_time = 'infinity'"
        " where name = 'odd'"
    )

    await scheduler.run_once()

    assert await told(admin, "good") == [("fired", None)] and await told(admin, "odd") == [
        ("fired", None)
    ]


# Two in charge, and none


async def test_whoever_was_replaced_decides_nothing_more(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Once")

    async with a_scheduler(account, 2) as newer:
        with pytest.raises(Fenced):
            await scheduler.run_once()
        await newer.run_once()

    assert await told(admin) == [("fired", None)]


@pytest.mark.parametrize("moment", ["before", "within", "after"])
async def test_the_next_one_in_charge_finds_what_the_last_one_left(
    account, admin, scheduler, monkeypatch, moment
):
    for name in ("one", "two", "three"):
        await a_job(admin, name, schedule_interval_type="Hours")
        await since(account, name, "2 h 5 s")
    record, calling = scheduler._record, scheduler.context.store.calling

    @contextlib.asynccontextmanager
    async def uncommitted():
        async with calling() as tx:
            yield tx
            raise asyncio.CancelledError

    async def killed(batch):
        if moment == "within":
            monkeypatch.setattr(scheduler.context.store, "calling", uncommitted)
        if moment != "before":
            await record(batch)
        raise asyncio.CancelledError

    monkeypatch.setattr(scheduler, "_record", killed)
    with pytest.raises(asyncio.CancelledError):
        await scheduler.run_once()
    left = len(await account.fetch("select from jobs_internal.slot"))
    async with a_scheduler(account, 2) as newer:
        await newer.run_once()

    assert left == (9 if moment == "after" else 0)
    for name in ("one", "two", "three"):
        assert await told(admin, name) == [("missed", "Late")] * 2 + [("fired", None)]
        assert len(await admin.rows(RUNS, name)) == 1


async def test_many_at_once_decide_each_slot_once(account, admin, scheduler):
    """The same epoch in many tasks: what fences can't tell apart, the rows do."""
    for name in ("one", "two", "three", "four"):
        await a_job(admin, name, schedule_interval_type="Minutes")
        await since(account, name, "20 min 2 s")
    others = [Scheduler(core_context(account, scheduler.context.store)) for _ in range(6)]

    await asyncio.gather(*(service.decide_due() for service in others))
    await scheduler.decide_due()

    for name in ("one", "two", "three", "four"):
        assert await told(admin, name) == [("missed", "Late")] * 20 + [("fired", None)]
        assert len(await admin.rows(RUNS, name)) == 1


async def test_a_run_whose_slot_row_was_lost_is_not_started_twice(account, admin, scheduler):
    await a_job(admin, schedule_interval_type="Hours")
    await scheduler.run_once()
    run = await admin.value("select job_execution_id from jobs.job_executions")
    await account.execute(
        "delete from jobs_internal.slot; update jobs_internal.job set next_slot = null"
    )

    await scheduler.run_once()

    assert [row[3] for row in await admin.rows(SLOTS, "nightly")] == [run]
    assert len(await admin.rows(RUNS, "nightly")) == 1


# Waking


async def test_an_edit_wakes_it_and_the_next_slot_ends_the_pause(account, admin):
    minute = timedelta(seconds=60)
    await some_steps(admin, "a")
    async with a_store(account) as store:
        shared = core_context(account, store, heartbeat=minute)
        listener, scheduler = Listener(shared), Scheduler(shared)
        async with running(listener, scheduler):
            await until(lambda: listener.status == "listens" and scheduler.pause == minute)
            soon = await admin.value("select clock_timestamp() + interval '2 s'")
            await admin.call(
                "sp_update_job", job_name="nightly", enabled=True,
                schedule_interval_type="Days", schedule_start_time=soon,
            )  # fmt: skip

            async def fired():
                return await told(admin) == [("fired", None)]

            await until(fired)

    assert [row[0] for row in await admin.rows(SLOTS, "nightly")] == [soon]


async def test_a_thousand_in_the_same_second_are_all_started_in_few_transactions(
    account, admin, scheduler, monkeypatch
):
    await a_job(
        admin, "job 0", schedule_cron="0 0 1 1 *", schedule_time_zone="Europe/Berlin", misfire_within_seconds=10**8
    )  # fmt: skip
    columns = await admin.value(
        "select string_agg(attname, ', ') from pg_attribute where attrelid = 'jobs_internal.job'::regclass"
        " and attnum > 0 and attname not in ('job_id', 'name')"
    )
    await account.execute(
        f"insert into jobs_internal.job (job_id, name, {columns})"
        f" select gen_random_uuid(), 'job ' || n, {columns} from jobs_internal.job, generate_series(1, 999) n;"
        " insert into jobs_internal.job_version (job_id, version, created_by) select job_id, 1, 'x'"
        "   from jobs_internal.job on conflict do nothing;"
        " insert into jobs_internal.job_step (job_id, version, step_id, name, script_hash, target_group_id,"
        "     target_group_name, content_hash, created_by, modified_by)"
        " select j.job_id, 1, 1, 'a', s.script_hash, s.target_group_id, 'all', s.content_hash, 'x', 'x'"
        "   from jobs_internal.job_step s, jobs_internal.job j on conflict do nothing;"
        " update jobs_internal.job set scheduled_since = clock_timestamp() - interval '366 days', next_slot = clock_timestamp()"
    )
    calls, record = [], scheduler._record

    async def counted(batch):
        calls.append(len(batch))
        return await record(batch)

    monkeypatch.setattr(scheduler, "_record", counted)
    await scheduler.run_once()

    assert sum(calls) == 1000 and len(calls) == 4
    assert (
        await admin.value("select count(*) from jobs.job_executions where origin = 'slot'") == 1000
    )
    assert await admin.value("select count(distinct slot) from jobs.job_executions") == 1
