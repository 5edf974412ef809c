"""idle-latency: one run on one database while nothing else is to do, from its start until it is recorded."""

import asyncio
import itertools
import os
import statistics
import time
from uuid import UUID, uuid4

import asyncpg

from bench.fleet import ROUNDS, Fleet, a_fleet, a_session, line
from bench.peer import a_peer
from bench.raw import Said, said, say

SCRIPT = "select 1"
TIMES = int(os.environ.get("BENCH_TIMES", "100"))  # in each round
PEER_TIMES = 10  # in each round: it is ten times slower
PAUSE = 0.05  # seconds in which the run ends and everything rests again
PATIENCE = 10.0  # seconds
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
    found: dict[str, list[float]] = {"ours": [], "limit": [], "peer": []}
    ours: list[float] = []
    bare: list[float] = []
    rest: list[float] = []
    with a_fleet(databases=1, schemas=1) as fleet:
        fleet.a_group("one", type="SqlDatabase", databaseName=fleet.databases[0])
        fleet.a_job("idle", SCRIPT, group="one")
        (texts,) = fleet.do(said(fleet, SCRIPT, [(fleet.databases[0], None)]))
        steps = fleet.do(Steps.of(fleet, texts))
        bell = fleet.do(Bell.of(fleet))
        queue = fleet.do(fleet.a_database("pgqueuer"))
        with a_peer(queue, fleet.target, [(fleet.databases[0], texts)], at_once=2) as ask:
            fleet.do(measured(bell.by_sql, 10))
            for _ in range(ROUNDS):
                ours += (taken := fleet.do(measured(bell.by_sql, TIMES)))
                found["ours"].append(statistics.median(taken))
                rest += fleet.do(measured(bell.by_rest, max(1, TIMES // 5)))
                bare += (taken := fleet.do(measured(steps.run, TIMES)))
                found["limit"].append(statistics.median(taken))
                found["peer"].append(statistics.median(ask("idle") for _ in range(PEER_TIMES)))
        fleet.do(bell.close())
        fleet.do(steps.close())
    line(
        "idle-latency",
        found,
        digits=2,
        p99={"ours": round(percentile(ours, 99), 2), "limit": round(percentile(bare, 99), 2)},
        by_rest=round(statistics.median(rest), 2),
        split=bell.split(),
        goal="ratio at most 3, ours at most 10",
        note=f"milliseconds, median of {TIMES} in each round: from sp_start_job being sent until the"
        " recorded result was notified, sessions kept; limit: the durable steps alone in one process"
        " (run created, task reserved, started, the same messages at the target, recorded and notified: four"
        " commits);"
        " peer: pgqueuer 1.6, enqueued to recorded; by_rest: from POST start; split: between the instants that"
        " the control database knows",
    )


class Bell:
    """Starts runs and hears when a result is recorded."""

    def __init__(self, fleet: Fleet, caller: asyncpg.Connection) -> None:
        self._fleet = fleet
        self._caller = caller
        self._rung = asyncio.Event()
        self._seen: list[asyncpg.Record] = []

    @classmethod
    async def of(cls, fleet: Fleet) -> "Bell":
        bell = cls(fleet, await asyncpg.connect(fleet.control_url))
        await fleet.root.add_listener("muster_result", lambda *_: bell._rung.set())
        return bell

    async def by_sql(self) -> float:
        self._rung.clear()
        began = time.perf_counter()
        run = await self._caller.fetchval("select jobs.sp_start_job('idle')")
        return await self._heard(run) - began

    async def by_rest(self) -> float:
        self._rung.clear()
        began = time.perf_counter()
        run = await asyncio.to_thread(self._fleet.start, "idle")
        return await self._heard(run) - began

    async def _heard(self, run: UUID) -> float:
        async with asyncio.timeout(PATIENCE):
            while True:
                await self._rung.wait()
                heard = time.perf_counter()
                self._rung.clear()
                if row := await self._fleet.root.fetchrow(RECORDED, run):
                    self._seen.append(row)
                    return heard

    def split(self) -> dict[str, float]:
        """Milliseconds until each moment from the one before."""
        return {
            later: round(
                statistics.median(
                    (row[later] - row[at]).total_seconds() * 1000 for row in self._seen
                ),
                2,
            )
            for at, later in itertools.pairwise(MOMENTS)
        }

    async def close(self) -> None:
        await self._caller.close()


class Steps:
    """What no design can leave out, one after the other, on connections that are kept, until somebody hears of it."""

    def __init__(
        self,
        control: asyncpg.Connection,
        listener: asyncpg.Connection,
        target: asyncpg.Connection,
        texts: Said,
    ) -> None:
        self._control = control
        self._listener = listener
        self._target = target
        self._texts = texts[:-1]  # the last one, DISCARD ALL, happens behind
        self._rung = asyncio.Event()

    @classmethod
    async def of(cls, fleet: Fleet, texts: Said) -> "Steps":
        url = await fleet.a_database("raw")
        async with a_session(url) as connection:
            await connection.execute(TABLES)
        control, listener = [await asyncpg.connect(url) for _ in range(2)]
        steps = cls(control, listener, await fleet.connect(fleet.databases[0]), texts)
        await listener.add_listener("recorded", lambda *_: steps._rung.set())
        return steps

    async def run(self) -> float:
        self._rung.clear()
        began = time.perf_counter()
        run, task = uuid4(), uuid4()
        say_control = self._control.execute
        await say_control("insert into run values ($1, 'Created')", run)
        await say_control("insert into task values ($1, 'Created')", task)
        await say_control(
            "update task set state = 'InProgress', started = clock_timestamp() where id = $1", task
        )
        await say(self._target, self._texts)
        recorded = asyncio.ensure_future(say_control(RECORD, task))
        async with asyncio.timeout(PATIENCE):
            await self._rung.wait()
        heard = time.perf_counter()
        await recorded
        return heard - began

    async def close(self) -> None:
        for connection in (self._control, self._listener, self._target):
            await connection.close()


async def measured(once, times: int) -> list[float]:
    """Milliseconds of each."""
    taken = []
    for _ in range(times):
        taken.append(1000 * await once())
        await asyncio.sleep(PAUSE)
    return taken


def percentile(values: list[float], which: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[which - 1]
