"""A large partition is never read for a few tasks, whatever the planner believed when it first saw it."""

from uuid import uuid4

import asyncpg
import pytest

from tests.support.control_db import installed
from tests.support.executions import EPOCH, PLAN, a_session, a_snapshot
from tests.support.execution_fixture import (
    FAILED,
    SUCCEEDED,
    Q,
    ExecutionFixture,
    an_execution,
    another_run,
)

pytestmark = pytest.mark.newest

MANY = 60_000
FEW = 50
TOUCHED = """
select relname, seq_scan, idx_scan, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as rows
  from pg_stat_xact_user_tables
 where schemaname = 'jobs_internal' and relname ~ '^(task_|target_execution_|snapshot_target)'
"""
# As tasks that were tried before and failed are.
TRIED = """
insert into jobs_internal.task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch, host_id,
                                lifecycle, start_time, end_time)
select run_day, job_execution_id, step_id, ordinal, 1, gen_random_uuid(), 1, $2, 'Failed', now(), now()
  from jobs_internal.target_execution where job_execution_id = $1
"""


async def rows_touched(engine: asyncpg.Connection) -> int:
    return sum(row["rows"] for row in await engine.fetch(TOUCHED))


async def a_round(execution: ExecutionFixture, *, attempt: int) -> dict[str, int]:
    """Tasks for the last targets go all ways; how many rows of large tables each call touched."""
    ordinals = await execution.owner.fetch(
        "select ordinal from jobs_internal.target_execution where job_execution_id = $1"
        " and end_time is null order by ordinal desc limit $2",
        execution.run,
        FEW + 3,
    )
    *chosen, back, late, stop = [row[0] for row in ordinals]
    touched: dict[str, int] = {}

    async def counted(name: str, call):  # noqa: ANN001, ANN202 - any call
        async with execution.engine.transaction():  # in which the counters stay
            before = await rows_touched(execution.engine)
            answer = await call
            touched[name] = await rows_touched(execution.engine) - before
        return answer

    keys = await counted("reserve", execution.reserve(*chosen, back, attempt=attempt))
    taken = await counted("take", execution.ask("take", execution.host, 0))
    assert len(taken) >= len(keys)
    *keys, returned = keys
    assert await counted("start", execution.report(starts=keys)) == []
    assert (
        await counted("commit", execution.report(commits=[key | {"xact_id": "1"} for key in keys]))
        == []
    )
    results = [key | SUCCEEDED for key in keys[1:]] + [keys[0] | FAILED | {"retry": True}]
    assert await counted("result", execution.report(results=results)) == []
    back_again = [returned | {"wait_reason": "ServerFull", "pause_seconds": 1}]
    assert await counted("return", execution.report(returns=back_again)) == []
    await execution.owner.execute(
        "update jobs_internal.target_execution set tried_at = now() - interval '2 days'"
        " where job_execution_id = $1 and ordinal = $2",
        execution.run,
        late,
    )
    assert (
        len(await counted("time out", execution.ask("time_out", EPOCH, execution.run, 1, [late])))
        == 1
    )
    assert (
        len(
            await counted(
                "cancel", execution.ask("cancel_targets", EPOCH, execution.run, 1, [stop])
            )
        )
        == 1
    )
    await counted("live", execution.ask("live_invocations", EPOCH))
    await counted("disown", execution.ask("disown", EPOCH, execution.host))
    await counted("completions", execution.ask("read_completions", EPOCH, [], []))
    return touched


@pytest.mark.parametrize(
    "seen",
    [
        "empty",
        pytest.param("never", marks=pytest.mark.slow),
        pytest.param("full", marks=pytest.mark.slow),
    ],
)
async def test_a_few_tasks_touch_a_few_rows(owner, engine, seen):
    execution = await an_execution(owner, engine, targets=0)
    if seen == "empty":
        await owner.execute("analyze")
        small = await another_run(owner, engine, execution.job, execution.host, targets=FEW + 3)
        for _ in range(2):  # their plans are made and kept
            await a_round(small, attempt=1)
            small = await another_run(owner, engine, execution.job, execution.host, targets=FEW + 3)
    large = await another_run(owner, engine, execution.job, execution.host)
    await engine.fetchval(Q.begin_run, EPOCH, large.run)
    await engine.execute(Q.reach_step, EPOCH, large.run, 1)
    snapshot = await a_snapshot(owner, execution.job.group, MANY)
    await owner.fetchval(PLAN, large.run, 1, snapshot, [])
    await owner.execute(TRIED, large.run, execution.host)
    if seen == "full":
        await owner.execute("analyze")

    touched = await a_round(large, attempt=2)

    assert {name: rows for name, rows in touched.items() if rows > 10 * FEW} == {}
    assert touched["result"] >= 2 * FEW


async def test_the_targets_of_a_large_step_are_read_side_by_side(owner, engine):
    """Three indexes in the order of the targets, each once: not one look into an index for each target."""
    execution = await an_execution(owner, engine, targets=0)
    await owner.execute("analyze")
    await execution.ask("live_targets", EPOCH, execution.day, execution.run, 1)
    large = await another_run(owner, engine, execution.job, execution.host, targets=20_000)
    await large.reserve(7, 9)

    async with engine.transaction():
        before = {row["relname"]: row["idx_scan"] for row in await engine.fetch(TOUCHED)}
        rows = await large.ask("live_targets", EPOCH, large.day, large.run, 1)
        scans = {
            row["relname"].partition("_2")[0]: row["idx_scan"] - before[row["relname"]]
            for row in await engine.fetch(TOUCHED)
        }

    assert [row["ordinal"] for row in rows] == list(range(1, 20_001))
    assert [row["ordinal"] for row in rows if row["host_id"]] == [7, 9]
    assert scans == {"task": 1, "target_execution": 1, "snapshot_target": 1}


async def test_a_partition_for_each_day_makes_no_call_touch_more(owner, engine):
    execution = await an_execution(owner, engine, targets=FEW + 3)
    for days in range(1, 20):
        await owner.execute(
            "select jobs_internal.ensure_partitions($1::date - $2::integer)", execution.day, days
        )

    touched = await a_round(execution, attempt=1)

    assert max(touched.values()) <= 10 * FEW
    items = "select pg_catalog.cardinality(items) from jobs_internal.completion limit 1"
    assert await owner.fetchval(items) == FEW


async def test_an_unknown_task_is_looked_for_and_not_made(owner, engine):
    """Rows are written by upserts, which must never be inserts."""
    execution = await an_execution(owner, engine)
    keys = [execution.key(ordinal, uuid4(), attempt=2) for ordinal in (1, 99)]

    refused = await execution.report(
        starts=keys,
        commits=[key | {"xact_id": "1"} for key in keys],
        results=[key | SUCCEEDED for key in keys],
        returns=keys,
    )

    assert sorted(refused) == sorted(key["invocation_id"] for key in keys for _ in range(4))
    assert await owner.fetchval("select count(*) from jobs_internal.task") == 0
    assert await owner.fetchval("select count(*) from jobs_internal.target_execution") == 3
