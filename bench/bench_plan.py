"""plan: 700,000 target executions by plan_targets, beside a bare INSERT … SELECT of the same rows."""

import asyncio
import tempfile
import time
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from bench.report import print_line, summary
from engine.sql import MIGRATIONS, REPLACEABLE
from muster.core.cluster import Cluster
from muster.core.migrate import migrate, refresh
from tests.support.executions import EPOCH, PLAN, Job, a_job, a_run, a_snapshot, a_step

TARGETS = 700_000
ROUNDS = 3
LEDGER = "jobs_internal.migration"
INSTANCE = """
insert into jobs_internal.instance (account_uid, identity, schema_version, min_engine_version,
                                    epoch, workload_id, started_at)
values (gen_random_uuid(), gen_random_uuid(), 1, '0', $1, gen_random_uuid(), clock_timestamp())
"""
BARE = """
create table bare (like jobs_internal.target_execution);
alter table bare add primary key (run_day, job_execution_id, step_id, ordinal)
"""
LIMIT = """
insert into bare (run_day, job_execution_id, step_id, ordinal, target_execution_id, snapshot_id,
                  lifecycle, wave, priority, attempts, free_attempts, create_time)
select current_date, $1, 1, ordinal, gen_random_uuid(), snapshot_id, 'Created', 1, 0, 0, 0, now()
  from jobs_internal.snapshot_target
 where snapshot_id = $2
 order by ordinal
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        print_line(asyncio.run(bench(Path(folder))))


async def bench(folder: Path) -> dict:
    cluster = Cluster(folder / "control")
    await cluster.create()
    await cluster.start()
    try:
        connection = await asyncpg.connect(cluster.superuser_url().reveal())
        job = await install(connection)
        snapshot = await a_snapshot(connection, job.group, TARGETS)
        await connection.execute("analyze")
        rounds: dict[str, list[float]] = {"ours": [], "limit": []}
        for _ in range(ROUNDS):
            rounds["limit"].append(await insert_bare(connection, snapshot))
            rounds["ours"].append(await plan(connection, job, snapshot))
        await connection.close()
    finally:
        await cluster.stop()
    note = f"seconds for {TARGETS} target executions, median of {ROUNDS} rounds"
    return summary("plan", rounds, digits=2, goal="at most 2 ×", note=note)


async def install(connection: asyncpg.Connection) -> Job:
    await connection.execute("create schema jobs; create schema jobs_internal")
    await migrate(connection, MIGRATIONS, ledger=LEDGER)
    await refresh(connection, REPLACEABLE, ledger=LEDGER)
    await connection.execute(INSTANCE, EPOCH)
    await connection.execute(BARE)
    return await a_job(connection)


async def insert_bare(connection: asyncpg.Connection, snapshot: UUID) -> float:
    await connection.execute("truncate bare")
    await connection.execute("checkpoint")
    began = time.monotonic()
    await connection.execute(LIMIT, uuid4(), snapshot)
    return time.monotonic() - began


async def plan(connection: asyncpg.Connection, job: Job, snapshot: UUID) -> float:
    run = await a_run(connection, job)
    await a_step(connection, run)
    await connection.execute("truncate jobs_internal.target_execution")
    await connection.execute("checkpoint")
    began = time.monotonic()
    await connection.fetchval(PLAN, run, 1, snapshot, [])
    return time.monotonic() - began
