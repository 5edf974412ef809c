"""Runs are forgotten when their jobs keep them no longer, and tables are counted."""

import json
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from engine.core.maintenance import Q, Maintenance
from tests.support.definitions import a_definer
from tests.support.executions import a_job, a_session, end, some_targets
from tests.support.launching import until
from tests.support.core_services import a_store

pytestmark = [pytest.mark.newest, pytest.mark.deep]

PARTITION = "select to_regclass('jobs_internal.task_' || to_char($1::date, 'YYYYMMDD')) is not null"
TODAY = datetime.now(UTC).date()


@pytest.fixture
async def store(account):
    async with a_store(account) as store:
        yield store


@pytest.fixture
async def owner(account, store):
    """With the store's epoch in charge."""
    async with a_session(account) as session:
        yield session


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


# Forgetting


async def a_run_on(owner, job, day: date, targets: int = 2) -> UUID:
    run = uuid4()
    await owner.execute("select jobs_internal.ensure_partitions($1)", day)
    await owner.execute(
        "insert into jobs_internal.job_execution"
        " (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door)"
        " values ($1, $2, 1, $3, ($3::date + time '12:00') at time zone 'UTC', 'caller', 'x', 'psql')",
        run, job.id, day,
    )  # fmt: skip
    snapshot = await some_targets(owner, job, run, targets)
    await owner.execute(
        "update jobs_internal.snapshot set made_at = $2::date where snapshot_id = $1", snapshot, day
    )
    return run


async def keep(owner, job, days: int | None) -> None:
    await owner.execute(
        "update jobs_internal.job set retention_days = $2 where job_id = $1", job.id, days
    )


async def left(owner) -> list[tuple[str, int]]:
    """Jobs and how many days ago they ran."""
    rows = await owner.fetch(
        "select j.name, x.run_day from jobs_internal.job_execution x join jobs_internal.job j using (job_id)"
    )
    return sorted((row[0], (TODAY - row[1]).days) for row in rows)


async def orphans(owner) -> list[int]:
    """What belongs to no run any more."""
    counts = []
    for table in ("task", "target_execution", "step_execution"):
        counts.append(await owner.fetchval(
            f"select count(*) from jobs_internal.{table} t where not exists (select from"
            " jobs_internal.job_execution x where x.job_execution_id = t.job_execution_id)"
        ))  # fmt: skip
    counts.append(await owner.fetchval(
        "select count(*) from jobs_internal.snapshot s where not exists (select from"
        " jobs_internal.step_execution e where e.snapshot_id = s.snapshot_id)"
    ))  # fmt: skip
    return counts


async def test_each_job_keeps_its_runs_as_long_as_it_says(owner, store):
    plain, short, long = [await a_job(owner, name) for name in ("plain", "short", "long")]
    await keep(owner, short, 3)
    await keep(owner, long, 100)
    for job in (plain, short, long):
        for day in (2, 3, 4, 45, 46, 60, 99, 101):
            await end(owner, await a_run_on(owner, job, ago(day)))
    # A day that no job keeps for longer goes as a whole.
    await end(owner, await a_run_on(owner, plain, ago(70)))

    message = await Maintenance(store).prune_history()

    assert await left(owner) == sorted(
        [("long", day) for day in (2, 3, 4, 45, 46, 60, 99)]
        + [("plain", day) for day in (2, 3, 4, 45)]
        + [("short", day) for day in (2, 3)]
    )
    assert await orphans(owner) == [0, 0, 0, 0]
    assert message == "2 days dropped, 12 runs deleted."
    assert await Maintenance(store).prune_history() is None


async def test_what_lives_is_never_touched_and_keeps_only_itself(owner, store):
    job = await a_job(owner, "stuck")
    live = await a_run_on(owner, job, ago(60))
    await end(owner, await a_run_on(owner, job, ago(60)))

    assert await Maintenance(store).prune_history() == "0 days dropped, 1 run deleted."

    assert await left(owner) == [("stuck", 60)]
    await end(owner, live)
    assert await Maintenance(store).prune_history() == "1 day dropped, 1 run deleted."
    assert await left(owner) == []


async def test_a_deleted_job_goes_with_its_last_run(owner, store):
    job = await a_job(owner, "gone")
    for day in (10, 50):
        await end(owner, await a_run_on(owner, job, ago(day)))
    await owner.execute("select jobs.sp_delete_job('gone')")
    await owner.execute(
        "update jobs_internal.job set deleted_at = now() - interval '50 days' where name = 'gone'"
    )

    await Maintenance(store).prune_history()
    assert await left(owner) == [("gone", 10)]
    await keep(owner, job, 5)
    await Maintenance(store).prune_history()

    assert (
        await left(owner) == []
        and await owner.fetch("select from jobs_internal.job where name = 'gone'") == []
    )


async def test_a_large_run_goes_in_several_bites(owner, store):
    job, other = await a_job(owner, "large"), await a_job(owner, "other")
    await keep(owner, other, 100)
    await end(owner, await a_run_on(owner, job, ago(50), targets=25_000))
    await end(owner, await a_run_on(owner, other, ago(50)))

    async with store.calling() as tx:
        bite = await tx.fetchrow(Q.prune_history, 1, 45)
    assert tuple(bite) == (0, 0, True)
    assert await owner.fetchval("select count(*) from jobs_internal.target_execution") == 5_002
    assert await Maintenance(store).prune_history() == "0 days dropped, 1 run deleted."

    assert await left(owner) == [("other", 50)] and await orphans(owner) == [0, 0, 0, 0]


async def test_a_day_that_is_read_for_long_goes_the_next_time(account, owner, store):
    await end(owner, await a_run_on(owner, await a_job(owner), ago(60)))
    async with a_session(account) as reader, reader.transaction():
        await reader.fetch("select * from jobs_internal.task")
        await Maintenance(store).prune_history()
        assert (await owner.fetchval(PARTITION, ago(60))) is True

    assert await Maintenance(store).prune_history() == "1 day dropped, 0 runs deleted."
    assert await orphans(owner) == [0, 0, 0, 0]


async def test_old_slots_go_but_for_the_last(owner, store):
    often, rare = await a_job(owner, "often"), await a_job(owner, "rare")
    await owner.execute(
        "insert into jobs_internal.slot (job_id, slot, outcome) select $1, now() - n * interval '1 day', 'missed'"
        "  from generate_series(0, 60) n", often.id,
    )  # fmt: skip
    await owner.execute(
        "insert into jobs_internal.slot (job_id, slot, outcome) select $1, now() - n * interval '1 year', 'missed'"
        "  from generate_series(1, 3) n", rare.id,
    )  # fmt: skip

    await Maintenance(store).prune_history()

    counts = await owner.fetch(
        "select name, count(*), max(slot) > now() - interval '366 days' from jobs_internal.slot"
        " join jobs_internal.job using (job_id) group by 1 order by 1"
    )
    assert [tuple(row) for row in counts] == [("often", 45, True), ("rare", 1, True)]


async def test_queries_go_with_the_runs_that_asked_them(account, owner, store):
    async with a_definer(account) as admin:
        await admin.call("sp_add_target_group", target_group_name="all")
    for text in ("select 1", "select 2", "select 3"):
        asked = {"targetGroup": {"name": "all"}, "script": text, "timeoutSeconds": 60}
        await account.fetch("select jobs_internal.run_query($1)", json.dumps(asked), role="agent")
    await owner.execute(
        "update jobs_internal.job_execution set lifecycle = 'Canceled', end_time = now(), run_day = $1,"
        " create_time = ($1::date + time '12:00') at time zone 'UTC' where job_version < 3", ago(50),
    )  # fmt: skip

    await Maintenance(store).prune_history()

    versions = await owner.fetch("select v.version from jobs_internal.job_version v join jobs_internal.job j"
                                 " using (job_id) where j.name = 'adhoc'")  # fmt: skip
    assert [row[0] for row in versions] == [3]
    texts = await owner.fetch("select body from jobs_internal.script")
    assert [row[0] for row in texts] == ["select 3"]


# Counting


async def test_tables_that_changed_much_are_counted(owner, store):
    job = await a_job(owner)
    await a_run_on(owner, job, TODAY, targets=3_000)
    counted = (
        "select coalesce(max(last_analyze), '-infinity') > now() - interval '1 hour' from pg_stat_user_tables"
        " where relname = $1"
    )
    partition = f"target_execution_{TODAY:%Y%m%d}"

    async def known():
        return await owner.fetchval(
            "select n_mod_since_analyze >= 3000 from pg_stat_user_tables where relname = $1",
            partition,
        )

    await owner.execute("select pg_stat_clear_snapshot()")
    await until(known)
    message = await Maintenance(store).analyze_tables()

    assert message == "2 tables counted."
    assert (
        await owner.fetchval("select reltuples from pg_class where relname = $1", partition)
        == 3_000
    )
    assert await owner.fetchval(counted, "snapshot_target")
    assert await owner.fetchval("select reltuples from pg_class where relname = 'audit'") <= 0
