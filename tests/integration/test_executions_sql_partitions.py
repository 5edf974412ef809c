"""Days come when they are needed and go when nobody needs them any more."""

import asyncio
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import a_job, a_session, end, some_targets

PARTITIONS = """
select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
  join pg_class p on p.oid = i.inhparent
 where p.relname in ('step_execution', 'target_execution', 'task') and c.relkind = 'r' order by 1
"""
ENSURE = "select jobs_internal.ensure_partitions($1)"
DROP = "select * from jobs_internal.drop_partitions($1)"
TODAY = datetime.now(UTC).date()


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


async def names(owner) -> list[str]:
    return [row[0] for row in await owner.fetch(PARTITIONS)]


async def a_run_on(owner, job, day: date) -> UUID:
    run = uuid4()
    await owner.execute(ENSURE, day)
    await owner.execute(
        "insert into jobs_internal.job_execution"
        " (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door)"
        " values ($1, $2, 1, $3, ($3::date + time '12:00') at time zone 'UTC', 'caller', 'x', 'psql')",
        run, job.id, day,
    )  # fmt: skip
    await some_targets(owner, job, run, 2)
    return run


async def test_a_day_is_three_tables_that_belong_to_the_owner(account, owner):
    await owner.execute(ENSURE, date(2026, 3, 1))
    await owner.execute(ENSURE, date(2026, 3, 1))

    assert await names(owner) == [
        "step_execution_20260301",
        "target_execution_20260301",
        "task_20260301",
    ]
    rows = await owner.fetch(
        "select distinct pg_get_userbyid(relowner), relnamespace::regnamespace::text"
        "  from pg_class where relname like '%20260301' and relkind = 'r'"
    )
    assert [tuple(row) for row in rows] == [(account.roles.owner, "jobs_internal")]
    options = await owner.fetch(
        "select relname, reloptions from pg_class where relname like '%n_20260301'"
    )
    assert {row[0]: row[1] for row in options}["target_execution_20260301"] == ["fillfactor=60"]


async def test_a_day_has_every_rule_of_its_parent(owner):
    await owner.execute(ENSURE, date(2026, 3, 1))

    for parent in ("step_execution", "target_execution", "task"):
        kinds = [
            await owner.fetchval(
                "select array[(select count(*) from pg_constraint where conrelid = t and contype in ('c', 'p')),"
                "             (select count(*) from pg_trigger where tgrelid = t),"
                "             (select count(*) from pg_index where indrelid = t)]"
                "  from (select $1::text::regclass as t) t",
                f"jobs_internal.{name}",
            )
            for name in (parent, f"{parent}_20260301")
        ]
        assert kinds[0] == kinds[1]


async def test_several_at_once_make_a_day_once(account):
    async def ensure(day):
        async with a_session(account) as session:
            await session.execute(ENSURE, day)

    days = [date(2026, 3, 1), date(2026, 3, 2)] * 5
    await asyncio.gather(*(ensure(day) for day in days))

    async with a_session(account) as owner:
        assert len(await names(owner)) == 6


async def test_making_a_day_waits_for_no_reader_or_writer_of_another(account, owner):
    await a_run_on(owner, await a_job(owner), TODAY)
    await owner.execute("set lock_timeout = '2s'")
    async with a_session(account) as other, other.transaction():
        await other.execute("update jobs_internal.target_execution set wait_reason = 'x'")
        await owner.execute(ENSURE, ago(-1))

    assert len(await names(owner)) == 6


async def test_only_days_whose_runs_are_over_and_past_retention_go(owner):
    short, long = await a_job(owner, "short"), await a_job(owner, "long")
    await owner.execute(
        "update jobs_internal.job set retention_days = 100 where job_id = $1", long.id
    )
    await end(owner, await a_run_on(owner, short, ago(60)))
    await end(owner, await a_run_on(owner, long, ago(61)))
    await a_run_on(owner, short, ago(62))
    await end(owner, await a_run_on(owner, short, ago(46)))
    await end(owner, await a_run_on(owner, short, ago(1)))

    gone = [row[0] for row in await owner.fetch(DROP, ago(45))]

    assert gone == [ago(60), ago(46)]
    assert len(await names(owner)) == 9
    days = await owner.fetch("select run_day from jobs_internal.job_execution order by 1")
    assert [row[0] for row in days] == [ago(62), ago(61), ago(1)]


async def test_what_only_dropped_days_named_goes_with_them(owner):
    kept, gone = await a_job(owner, "kept"), await a_job(owner, "gone")
    for job in (kept, gone):
        await end(owner, await a_run_on(owner, job, ago(60)))
    await a_run_on(owner, kept, TODAY)
    await owner.execute("update jobs_internal.snapshot set made_at = now() - interval '60 days'")
    await owner.execute(
        "update jobs_internal.job set deleted_at = now() - interval '50 days' where job_id = $1",
        gone.id,
    )

    await owner.fetch(DROP, ago(45))

    assert await owner.fetchval("select count(*) from jobs_internal.snapshot") == 1
    assert await owner.fetch("select name from jobs_internal.job") == [("kept",)]


async def test_a_long_reader_puts_dropping_off(account, owner):
    await end(owner, await a_run_on(owner, await a_job(owner), ago(60)))
    async with a_session(account) as reader:
        async with reader.transaction():
            await reader.fetch("select * from jobs_internal.task")

            assert await owner.fetch(DROP, ago(45)) == []

    assert len(await owner.fetch(DROP, ago(45))) == 1


async def test_the_engine_may_and_nobody_else(account, owner):
    engine, agent = await account.connect("engine"), await account.connect("agent")

    await engine.execute(ENSURE, TODAY)
    assert await engine.fetch(DROP, TODAY) == []
    for statement in (ENSURE, DROP):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await agent.execute(statement, TODAY)
    await engine.close()
    await agent.close()
