"""A run on its way through the control database, driven by the queries of the engine and its hosts.

execution = await an_execution(owner, engine, targets=3)        a begun run with one step and three targets
made = await execution.reserve(1, 2)                       tasks for the first two: their keys as hosts send them
await execution.report(starts=made)                        [] or the invocations that were refused
await execution.report(results=[made[0] | SUCCEEDED])
await execution.target(1), await execution.task(1)             their rows, as the owner sees them
await execution.told()                                     what the core reads, each thing once
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from muster.core.sql import Queries
from tests.support.executions import EPOCH, PLAN, Job, a_job, a_run, a_snapshot

Q = Queries("engine.db.queries", "executions.sql", "planning.sql")
LIVE_RUNS = "select * from jobs_internal.live_runs($1, $2)"
ORDERS = "select * from jobs_internal.open_cancellations($1)"
HOST = "select jobs_internal.register_host($1, $2, 'machine', 1, 100)"
SUCCEEDED = {"lifecycle": "Succeeded", "last_message": "Command(s) completed."}
FAILED = {"lifecycle": "Failed", "reason": "StatementFailed", "last_message": "division by zero"}

# A completion item, but for its invocation and lifecycle.
ITEM = {
    "kind": "result", "attempts": 1, "not_before": None, "deadline": None, "cancel_method": None,
    "reason": None, "sqlstate": None, "fingerprint": None,
}  # fmt: skip

Key = dict[str, Any]


@dataclass
class ExecutionFixture:
    owner: asyncpg.Connection
    engine: asyncpg.Connection
    job: Job
    run: UUID
    day: date
    snapshot: UUID | None
    host: UUID

    async def ask(self, query: str, *args: Any) -> list[asyncpg.Record]:
        return await self.engine.fetch(getattr(Q, query), *args)

    async def value(self, query: str, *args: Any) -> Any:
        return await self.engine.fetchval(getattr(Q, query), *args)

    async def reserve(
        self,
        *ordinals: int,
        attempt: int = 1,
        host: UUID | None = None,
        step: int = 1,
        stops: Iterable[UUID] = (),
        session: asyncpg.Connection | None = None,
    ) -> list[Key]:
        many, whose, invocations = len(ordinals), host or self.host, [uuid4() for _ in ordinals]
        stop = list(stops)
        await (session or self.engine).execute(
            Q.reserve, EPOCH, [whose] * many, [self.day] * many, [self.run] * many, [step] * many,
            list(ordinals), [attempt] * many, invocations, [whose] * len(stop), stop,
        )  # fmt: skip
        return [
            self.key(ordinal, invocation, attempt=attempt, step=step)
            for ordinal, invocation in zip(ordinals, invocations, strict=True)
        ]

    def key(self, ordinal: int, invocation: UUID, *, attempt: int = 1, step: int = 1) -> Key:
        return {
            "run_day": str(self.day), "job_execution_id": str(self.run), "step_id": step,
            "ordinal": ordinal, "attempt": attempt,
            "invocation_id": str(invocation),
        }  # fmt: skip

    async def report(
        self,
        *,
        starts: Iterable[Key] = (),
        commits: Iterable[Key] = (),
        results: Iterable[Key] = (),
        returns: Iterable[Key] = (),
        contacts: Iterable[Mapping[str, Any]] = (),
        host: UUID | None = None,
        epoch: int = EPOCH,
        session: asyncpg.Connection | None = None,
    ) -> list[str]:
        documents = [
            json.dumps(list(each)) for each in (starts, commits, results, returns, contacts)
        ]
        refused = await (session or self.engine).fetchval(
            Q.report, host or self.host, epoch, *documents
        )
        return [str(invocation) for invocation in refused]

    async def started(self, *ordinals: int, **named: Any) -> list[Key]:
        keys = await self.reserve(*ordinals, **named)
        assert await self.report(starts=keys) == []
        return keys

    async def told(self) -> list[dict[str, Any]]:
        """By all hosts, behind what was read before."""
        rows = await self.ask("read_completions", EPOCH, *_columns(self._known()))
        for row in rows:
            self._known()[row["host_id"]] = row["number"]
        return [each for row in rows for each in json.loads(row["items"])]

    def _known(self) -> dict[UUID, int]:
        return self.__dict__.setdefault("known", {})

    async def target(self, ordinal: int, step: int = 1) -> asyncpg.Record:
        return await self.owner.fetchrow(
            "select * from jobs_internal.target_execution"
            " where (job_execution_id, step_id, ordinal) = ($1, $2, $3)",
            self.run, step, ordinal,
        )  # fmt: skip

    async def task(self, ordinal: int, attempt: int = 1, step: int = 1) -> asyncpg.Record | None:
        return await self.owner.fetchrow(
            "select * from jobs_internal.task"
            " where (job_execution_id, step_id, ordinal, attempt) = ($1, $2, $3, $4)",
            self.run, step, ordinal, attempt,
        )  # fmt: skip

    async def step(self, step: int = 1) -> asyncpg.Record:
        return await self.owner.fetchrow(
            "select * from jobs_internal.step_execution where (job_execution_id, step_id) = ($1, $2)",
            self.run, step,
        )  # fmt: skip

    async def row(self) -> asyncpg.Record:
        return await self.owner.fetchrow(
            "select * from jobs_internal.job_execution where job_execution_id = $1", self.run
        )

    async def reach(self, step: int, targets: int) -> UUID:
        """The run has reached the step, which has targets."""
        await self.engine.execute(Q.reach_step, EPOCH, self.run, step)
        snapshot = await a_snapshot(self.owner, self.job.group, targets)
        await self.owner.fetchval(PLAN, self.run, step, snapshot, [])
        return snapshot


def _columns(known: Mapping[UUID, int]) -> tuple[list[UUID], list[int]]:
    return list(known), list(known.values())


async def a_host(engine: asyncpg.Connection) -> UUID:
    host = uuid4()
    await engine.execute(HOST, host, EPOCH)
    return host


async def an_execution(
    owner: asyncpg.Connection,
    engine: asyncpg.Connection,
    *,
    targets: int = 3,
    steps: int = 1,
    name: str = "nightly",
    **settings: Any,
) -> ExecutionFixture:
    """`settings` are columns of the job's steps."""
    job = await a_job(owner, name, steps=steps)
    if settings:
        await set_steps(owner, **settings)
    return await another_run(owner, engine, job, await a_host(engine), targets=targets)


async def another_run(
    owner: asyncpg.Connection,
    engine: asyncpg.Connection,
    job: Job,
    host: UUID,
    *,
    targets: int | None = None,
) -> ExecutionFixture:
    """Begun, unless it has no targets."""
    run = await a_run(owner, job)
    day = await owner.fetchval(
        "select run_day from jobs_internal.job_execution where job_execution_id = $1", run
    )
    execution = ExecutionFixture(owner, engine, job, run, day, None, host)
    if targets is not None:
        assert await engine.fetchval(Q.begin_run, EPOCH, run) == "Begun"
        execution.snapshot = await execution.reach(1, targets)
    return execution


async def set_steps(owner: asyncpg.Connection, **columns: Any) -> None:
    """Steps never change; this is what they would have been."""
    await owner.execute("alter table jobs_internal.job_step disable trigger user")
    places = ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, 1))
    values = [json.dumps(value) if name == "options" else value for name, value in columns.items()]
    await owner.execute(f"update jobs_internal.job_step set {places}", *values)
    await owner.execute("alter table jobs_internal.job_step enable trigger user")


async def waits(owner: asyncpg.Connection, session: asyncpg.Connection) -> None:
    """Until that session stands before a lock."""
    pid = session.get_server_pid()
    while not await owner.fetchval(
        "select exists (select from pg_locks where pid = $1 and not granted)", pid
    ):
        pass
