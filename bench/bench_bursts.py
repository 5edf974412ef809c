"""bursts: 1,000 runs of one target each that are due in the same second."""

import os
import time
from datetime import UTC, datetime, timedelta

import asyncpg

from bench.fleet import DATABASES, ROUNDS, RUN_TIMEOUT, Fleet, report, start_fleet
from bench.raw import KeptConnections, task_messages
from tests.support.stack import until

RUNS = int(os.environ.get("BENCH_RUNS", "1000"))
SCRIPT = "select 1"
LEAD = timedelta(seconds=5)  # between the last change of a schedule and the slot
TIMES = """
select count(*) as runs, count(end_time) as ended, extract(epoch from max(create_time)) as created,
       extract(epoch from max(end_time)) as last_end
  from jobs_internal.job_execution where slot = $1
"""
SCHEDULES = """
select jobs.sp_update_job(job_name => 'burst' || n, enabled => true, schedule_interval_type => 'Once',
                          schedule_start_time => $1)
  from generate_series(1, $2) n
"""


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": []}
    created: list[float] = []
    with start_fleet(databases=DATABASES, schemas=1) as fleet:
        for name in fleet.databases:
            fleet.a_group(name, type="SqlDatabase", databaseName=name)
        for number in range(1, RUNS + 1):
            fleet.a_job(f"burst{number}", SCRIPT, group=fleet.databases[number % DATABASES])
        databases = [fleet.databases[number % DATABASES] for number in range(RUNS)]
        messages = fleet.wait(task_messages(fleet, SCRIPT, [(name, None) for name in databases]))
        tasks = list(zip(databases, messages, strict=True))
        connections = fleet.wait(KeptConnections.of(fleet))
        for _ in range(ROUNDS):
            slot = (datetime.now(UTC) + LEAD + timedelta(seconds=RUNS / 100)).replace(microsecond=0)
            fleet.wait(fleet.root.fetch(SCHEDULES, slot, RUNS))
            row = ended(fleet, slot)
            rounds["ours"].append(float(row["last_end"]) - slot.timestamp())
            created.append(float(row["created"]) - slot.timestamp())
            began = time.perf_counter()
            fleet.wait(connections.rate(tasks))
            rounds["limit"].append(time.perf_counter() - began)
        fleet.wait(connections.close())
    report(
        "bursts",
        rounds,
        digits=2,
        seconds_to_last_created=[round(each, 2) for each in created],
        goal="ours at most 5 s",
        note=f"seconds from the slot to the last recorded end of {RUNS} runs of one target each, due at the same"
        f" instant, on {DATABASES} databases; limit: raw asyncpg sending their messages, connections kept",
    )


def ended(fleet: Fleet, slot: datetime) -> asyncpg.Record:
    until(
        lambda: fleet.wait(fleet.root.fetchrow(TIMES, slot))["ended"] == RUNS, seconds=RUN_TIMEOUT
    )
    return fleet.wait(fleet.root.fetchrow(TIMES, slot))
