"""What became of targets, written as rows: for tests of what is told about executions.

async with an_engine(here) as owner: ...            a session in which an engine is in charge
run = await a_planned_run(owner, job, 5)            a run whose first step has five targets: s1/db1 …
await ran(owner, run, 1, "Succeeded", results=…)    an attempt on a target, and what became of it
"""

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from tests.support.executions import EPOCH, Job, a_run, some_targets
from tests.support.jobs_fixture import JobsApi

JSON = {"notices", "results", "timings", "blockers"}
TASK = """
insert into jobs_internal.task (run_day, job_execution_id, step_id, ordinal, attempt, invocation_id, epoch,
                                host_id, lifecycle, start_time, end_time{columns})
select run_day, job_execution_id, $2, $3, $4, gen_random_uuid(), 1, gen_random_uuid(), $5,
       case when $5 <> 'Created' then clock_timestamp() end,
       case when $5 not in ('Created', 'InProgress') then clock_timestamp() end{values}
  from jobs_internal.job_execution where job_execution_id = $1
"""
BEGIN = """
update jobs_internal.target_execution
   set lifecycle = 'InProgress', attempts = $4, start_time = coalesce(start_time, clock_timestamp()),
       attempt_start_time = clock_timestamp()
 where job_execution_id = $1 and step_id = $2 and ordinal = $3
"""
END = """
update jobs_internal.target_execution
   set lifecycle = $4, end_reason = $5, last_message = $6,
       end_time = case when $4 not in ('InProgress', 'WaitingForRetry') then clock_timestamp() end,
       wait_reason = case when $4 = 'WaitingForRetry' then 'Retry' end,
       not_before = case when $4 = 'WaitingForRetry' then clock_timestamp() + interval '1 hour' end
 where job_execution_id = $1 and step_id = $2 and ordinal = $3
"""


@contextlib.asynccontextmanager
async def an_engine(jobs_api: JobsApi) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(
        jobs_api.targets.url(jobs_api.names[0], jobs_api.targets.root)
    )
    try:
        await connection.execute(
            "select jobs_internal.install_epoch($1, $2, 'machine', '0.1.0')", EPOCH, uuid4()
        )
        yield connection
    finally:
        await connection.close()


async def a_planned_run(owner: asyncpg.Connection, job: Job, targets: int) -> UUID:
    run = await a_run(owner, job)
    await some_targets(owner, job, run, targets)
    return run


async def ran(
    owner: asyncpg.Connection,
    run: UUID,
    ordinal: int,
    lifecycle: str,
    *,
    attempt: int = 1,
    step: int = 1,
    target: str | None = None,
    **columns: Any,
) -> None:
    """`lifecycle` is the attempt's; `target` is what the target became where that is something else."""
    names = list(columns)
    given = [json.dumps(columns[each]) if each in JSON else columns[each] for each in names]
    casts = ["::text::jsonb" if each in JSON else "" for each in names]
    query = TASK.format(
        columns="".join(f", {each}" for each in names),
        values="".join(f", ${n}{cast}" for n, cast in enumerate(casts, 6)),
    )
    await owner.execute(query, run, step, ordinal, attempt, lifecycle, *given)
    if lifecycle != "Created":
        await owner.execute(BEGIN, run, step, ordinal, attempt)
        became = target or lifecycle
        said = (columns.get("end_reason"), columns.get("message"))
        await owner.execute(END, run, step, ordinal, became, *said)


def a_set(columns: str, *rows: list[Any], truncated: bool = False) -> dict[str, Any]:
    """A result set as hosts write it."""
    return {
        "statement": 1,
        "tag": f"SELECT {len(rows)}",
        "columns": [{"name": name, "type": "text"} for name in columns.split()],
        "rows": list(rows),
        "rowCount": len(rows),
        "truncated": truncated,
    }
