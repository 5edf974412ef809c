"""Rows of definitions and runs, written by the owner role, for tests of what happens to executions.

account = await installed(settings, db, targets)      a fresh copy of an installed control database
async with a_session(account) as owner: ...      a session in which everything is done as the owner
job = await a_job(owner, "nightly", steps=2)     a job with steps and the group that they share
run = await a_run(owner, job)                    a run by jobs.sp_start_job
await a_step(owner, run)                         its first step, as the engine makes it
await a_snapshot(owner, job.group, 5)            five databases of one server
"""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import asyncpg

from tests.support.control_db import Account

JOB = """
with made as (
    insert into jobs_internal.job (name, version, created_by, modified_by)
    values ($1, $2::integer, 'test', 'test') returning job_id
), version as (
    insert into jobs_internal.job_version (job_id, version, created_by)
    select job_id, $2, 'test' from made
), script as (
    insert into jobs_internal.script (script_hash, body)
    values (sha256('select 1'), 'select 1') on conflict do nothing
)
select job_id from made
"""
STEPS = """
insert into jobs_internal.job_step (job_id, version, step_id, name, script_hash, target_group_id,
                                    target_group_name, content_hash, created_by, modified_by)
select $1, 1, n, 'step' || n, sha256('select 1'), $2, 'everything', sha256('x'), 'test', 'test'
  from generate_series(1, $3) n
"""
GROUP = """
insert into jobs_internal.target_group (name, created_by, modified_by)
values ($1, 'test', 'test') returning target_group_id
"""
STEP = """
insert into jobs_internal.step_execution (run_day, job_execution_id, step_id, step_name, content_hash)
select run_day, job_execution_id, $2, 'step' || $2::integer, sha256('x')
  from jobs_internal.job_execution where job_execution_id = $1
"""
SNAPSHOT = """
select jobs_internal.store_snapshot(
    p_epoch              => $1, p_snapshot_id => $2, p_target_group_id => $3::uuid, p_group_hash => '\\x00',
    p_directory_revision => 0, p_left_out => '[]',
    p_target_types       => array_agg('SqlDatabase'::text),
    p_server_ids         => array_agg('/servers/' || n % 100),
    p_server_names       => array_agg('s' || n % 100),
    p_pool_names         => array_agg(null::text),
    p_database_names     => array_agg('db' || n),
    p_schema_names       => array_agg(null::text),
    p_labels             => array_agg('{}'::jsonb),
    p_credential_ids     => array_agg(null::uuid),
    p_rules              => array_agg($3::uuid))
  from (select n from generate_series(1, $4::integer) n order by n) n
"""
PLAN = """
select jobs_internal.plan_targets(x, $2, $3, $4)
  from jobs_internal.job_execution x
 where x.job_execution_id = $1
"""
EPOCH = 1


@dataclass(frozen=True)
class Job:
    id: UUID
    name: str
    group: UUID


@contextlib.asynccontextmanager
async def a_session(account: Account) -> AsyncIterator[asyncpg.Connection]:
    """As the owner, with an engine in charge."""
    connection = await account.connect("root")
    try:
        await connection.execute(f'set role "{account.roles.owner}"')
        await connection.execute(
            "select jobs_internal.install_epoch($1, $2, 'machine', '0.1.0')", EPOCH, uuid4()
        )
        yield connection
    finally:
        await connection.close()


async def a_job(owner: asyncpg.Connection, name: str = "nightly", *, steps: int = 1) -> Job:
    group = await owner.fetchval(GROUP, f"everything {uuid4()}")
    job_id = await owner.fetchval(JOB, name, 1 if steps else 0)
    await owner.execute(STEPS, job_id, group, steps)
    return Job(job_id, name, group)


async def a_run(owner: asyncpg.Connection, job: Job, run_id: UUID | None = None) -> UUID:
    return await owner.fetchval("select jobs.sp_start_job($1, $2)", job.name, run_id)


async def a_step(owner: asyncpg.Connection, run: UUID, step_id: int = 1) -> None:
    await owner.execute(STEP, run, step_id)


async def a_snapshot(owner: asyncpg.Connection, group: UUID, targets: int) -> UUID:
    snapshot = uuid4()
    await owner.fetchval(SNAPSHOT, EPOCH, snapshot, group, targets)
    return snapshot


async def some_targets(
    owner: asyncpg.Connection, job: Job, run: UUID, targets: int, *, step_id: int = 1
) -> UUID:
    """The step of the run and its targets."""
    await a_step(owner, run, step_id)
    snapshot = await a_snapshot(owner, job.group, targets)
    await owner.fetchval(PLAN, run, step_id, snapshot, [])
    return snapshot


async def end(owner: asyncpg.Connection, run: UUID, lifecycle: str = "Succeeded") -> None:
    """The run and all that belongs to it is over."""
    async with owner.transaction():
        for table in ("target_execution", "step_execution", "job_execution"):
            for state in ("InProgress", lifecycle):
                await owner.execute(
                    f"update jobs_internal.{table} set lifecycle = $2,"
                    " end_time = case when $2 <> 'InProgress' then clock_timestamp() end"
                    " where job_execution_id = $1 and end_time is null",
                    run,
                    state,
                )
