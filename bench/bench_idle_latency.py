"""idle-latency: one run on one database while nothing else runs, from its start until its result is recorded."""

import asyncio
import itertools
import os
import statistics
import time
from uuid import UUID, uuid4

import asyncpg

from bench.fleet import ROUNDS, Fleet, a_session, report, start_fleet
from bench.peer import a_peer
from bench.raw import Messages, send, task_messages

SCRIPT = "select 1"
TIMES = int(os.environ.get("BENCH_TIMES", "100"))  # in each round
PEER_TIMES = 10  # in each round: it is ten times slower
PAUSE = 0.05  # seconds in which the run ends and every process becomes idle
RESULT_TIMEOUT = 10.0  # seconds
TABLES = """
create table run (id uuid primary key, state text not null, created timestamptz not null default now());
create table task (id uuid primary key, state text not null, started timestamptz, ended timestamptz,
                   created timestamptz not null default now())
"""
RECORDED = """
select x.create_time as created, x.start_time as begun, s.create_time as reached, e.create_time as planned,
       t.create_time as reserved, t.start_time as started, t.end_time as ended
  from jobs_internal.task t
  join jobs_internal.job_execution x using (run_day, job_execution_id)
  join jobs_internal.step_execution s using (run_day, job_execution_id, step_id)
  join jobs_internal.target_execution e using (run_day, job_execution_id, step_id, ordinal)
 where t.job_execution_id = $1 and t.lifecycle = 'Succeeded'
"""
RECORD = """
with recorded as (update task set state = 'Succeeded', ended = clock_timestamp() where id = $1 returning id)
select pg_notify('recorded', '') from recorded
"""
MOMENTS = ("created", "begun", "reached", "planned", "reserved", "started", "ended")


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": [], "peer": []}
    ours: list[float] = []
    bare: list[float] = []
    rest: list[float] = []
    with start_fleet(databases=1, schemas=1) as fleet:
        fleet.a_group("one", type="SqlDatabase", databaseName=fleet.databases[0])
        fleet.a_job("idle", SCRIPT, group="one")
        (messages,) = fleet.wait(task_messages(fleet, SCRIPT, [(fleet.databases[0], None)]))
        steps = fleet.wait(BareSteps.of(fleet, messages))
        timer = fleet.wait(RunTimer.of(fleet))
        queue = fleet.wait(fleet.a_database("pgqueuer"))
        with a_peer(queue, fleet.target, [(fleet.databases[0], messages)], at_once=2) as ask:
            fleet.wait(measure(timer.by_sql, 10))
            for _ in range(ROUNDS):
                ours += (values := fleet.wait(measure(timer.by_sql, TIMES)))
                rounds["ours"].append(statistics.median(values))
                rest += fleet.wait(measure(timer.by_rest, max(1, TIMES // 5)))
                bare += (values := fleet.wait(measure(steps.run, TIMES)))
                rounds["limit"].append(statistics.median(values))
                rounds["peer"].append(statistics.median(ask("idle") for _ in range(PEER_TIMES)))
        fleet.wait(timer.close())
        fleet.wait(steps.close())
    report(
        "idle-latency",
        rounds,
        digits=2,
        p99={"ours": round(percentile(ours, 99), 2), "limit": round(percentile(bare, 99), 2)},
        by_rest=round(statistics.median(rest), 2),
        split=timer.split(),
        goal="ratio at most 3, ours at most 10",
        note=f"milliseconds, median of {TIMES} in each round: from sp_start_job being sent until the"
        " recorded result was notified, sessions kept; limit: the durable steps alone in one process"
        " (run created, task reserved, started, the same messages at the target, recorded and notified: four"
        " commits);"
        " peer: pgqueuer 1.6, enqueued to recorded; by_rest: from POST start; split: between the instants that"
        " the control database records",
    )


class RunTimer:
    """Starts runs and waits for the notification of their results."""

    def __init__(self, fleet: Fleet, caller: asyncpg.Connection) -> None:
        self._fleet = fleet
        self._caller = caller
        self._notified = asyncio.Event()
        self._rows: list[asyncpg.Record] = []

    @classmethod
    async def of(cls, fleet: Fleet) -> "RunTimer":
        timer = cls(fleet, await asyncpg.connect(fleet.control_url))
        await fleet.root.add_listener("muster_result", lambda *_: timer._notified.set())
        return timer

    async def by_sql(self) -> float:
        self._notified.clear()
        began = time.perf_counter()
        run = await self._caller.fetchval("select jobs.sp_start_job('idle')")
        return await self._result_time(run) - began

    async def by_rest(self) -> float:
        self._notified.clear()
        began = time.perf_counter()
        run = await asyncio.to_thread(self._fleet.start, "idle")
        return await self._result_time(run) - began

    async def _result_time(self, run: UUID) -> float:
        async with asyncio.timeout(RESULT_TIMEOUT):
            while True:
                await self._notified.wait()
                now = time.perf_counter()
                self._notified.clear()
                if row := await self._fleet.root.fetchrow(RECORDED, run):
                    self._rows.append(row)
                    return now

    def split(self) -> dict[str, float]:
        """Milliseconds until each moment from the one before."""
        return {
            later: round(
                statistics.median(
                    (row[later] - row[at]).total_seconds() * 1000 for row in self._rows
                ),
                2,
            )
            for at, later in itertools.pairwise(MOMENTS)
        }

    async def close(self) -> None:
        await self._caller.close()


class BareSteps:
    """The steps that every design needs, one after the other on open connections, until the notification arrives."""

    def __init__(
        self,
        control: asyncpg.Connection,
        listener: asyncpg.Connection,
        target: asyncpg.Connection,
        messages: Messages,
    ) -> None:
        self._control = control
        self._listener = listener
        self._target = target
        self._messages = messages[:-1]  # the last one, DISCARD ALL, comes after the result
        self._notified = asyncio.Event()

    @classmethod
    async def of(cls, fleet: Fleet, messages: Messages) -> "BareSteps":
        url = await fleet.a_database("raw")
        async with a_session(url) as connection:
            await connection.execute(TABLES)
        control, listener = [await asyncpg.connect(url) for _ in range(2)]
        steps = cls(control, listener, await fleet.connect(fleet.databases[0]), messages)
        await listener.add_listener("recorded", lambda *_: steps._notified.set())
        return steps

    async def run(self) -> float:
        self._notified.clear()
        began = time.perf_counter()
        run, task = uuid4(), uuid4()
        execute = self._control.execute
        await execute("insert into run values ($1, 'Created')", run)
        await execute("insert into task values ($1, 'Created')", task)
        await execute(
            "update task set state = 'InProgress', started = clock_timestamp() where id = $1", task
        )
        await send(self._target, self._messages)
        recorded = asyncio.ensure_future(execute(RECORD, task))
        async with asyncio.timeout(RESULT_TIMEOUT):
            await self._notified.wait()
        now = time.perf_counter()
        await recorded
        return now - began

    async def close(self) -> None:
        for connection in (self._control, self._listener, self._target):
            await connection.close()


async def measure(once, times: int) -> list[float]:
    """Milliseconds of each."""
    values = []
    for _ in range(times):
        values.append(1000 * await once())
        await asyncio.sleep(PAUSE)
    return values


def percentile(values: list[float], which: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[which - 1]
