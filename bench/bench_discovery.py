"""discovery: listing the schemas of 400 databases, beside a raw loop that connects and asks the same."""

import asyncio
import os
import statistics
import time

from bench.fleet import ROUNDS, Fleet, RunTimes, report, start_fleet
from engine.targets.discovery import Q
from tests.support.stack import until

DATABASES = int(os.environ.get("BENCH_TENANTS", "400"))
IDLE_TIMEOUT = 120.0  # seconds; idle sessions close after 30


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": []}
    faster: list[float] = []
    with start_fleet(databases=DATABASES, schemas=1, sessions=DATABASES + 28) as fleet:
        fleet.a_job("schemas", "select 1")
        for _ in range(ROUNDS):
            until(lambda: fleet.wait(fleet.sessions()) == 0, seconds=IDLE_TIMEOUT)
            first, second = planning(fleet.run("schemas")), planning(fleet.run("schemas"))
            rounds["ours"].append(DATABASES / first)
            faster.append(first / second)
            rounds["limit"].append(fleet.wait(listed(fleet)))
    report(
        "discovery",
        rounds,
        digits=1,
        second_run_times_faster=round(statistics.median(faster), 2),
        goal="ratio at least 0.8, second_run_times_faster at least 2",
        note=f"databases/s from the start of a run until its {DATABASES} targets were planned, no connection open;"
        " limit: asyncpg that connects to each database and lists its schemas; second_run_times_faster: the same"
        " run again at once, with connections for all databases",
    )


def planning(times: RunTimes) -> float:
    return times.steps[0].planned - times.requested


async def listed(fleet: Fleet) -> float:
    began = time.perf_counter()
    for name in fleet.databases:
        connection = await fleet.connect(name)
        await connection.fetch(Q.schemas, "s%")
        await connection.close()
        await asyncio.sleep(0)
    return len(fleet.databases) / (time.perf_counter() - began)
