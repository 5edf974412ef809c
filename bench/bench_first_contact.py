"""first-contact: a database each, no connection open, SCRAM; beside raw asyncpg that connects and says the same."""

import asyncio
import statistics
import time

import asyncpg

from bench.fleet import DATABASES, ROUNDS, SLOTS, Fleet, Step, a_fleet, line
from bench.raw import Said, said, say
from tests.support.stack import until

SCRIPT = "select 1"
COLD = 120.0  # seconds to wait for: idle sessions close after 30


def main() -> None:
    found: dict[str, list[float]] = {"ours": [], "limit": []}
    faster: list[float] = []
    with a_fleet(databases=DATABASES, schemas=1) as fleet:
        fleet.a_job("contact", SCRIPT, SCRIPT, group="databases")
        texts = fleet.do(said(fleet, SCRIPT, [(name, None) for name in fleet.databases]))
        tasks = list(zip(fleet.databases, texts, strict=True))
        fleet.run("contact")
        fleet.do(connected(fleet, tasks))
        for _ in range(ROUNDS):
            until(lambda: fleet.do(fleet.sessions()) == 0, seconds=COLD)
            first, later = fleet.run("contact").steps
            found["ours"].append(1 / per_target(first))
            faster.append(per_target(first) / per_target(later))
            found["limit"].append(fleet.do(connected(fleet, tasks)))
    line(
        "first-contact",
        found,
        digits=1,
        later_step_times_faster=round(statistics.median(faster), 1),
        goal="ratio at least 0.9, later_step_times_faster at least 5",
        note=f"targets/s, first reservation to last recorded end of a step on {DATABASES} databases,"
        f" {SLOTS} at once, no TLS; limit: as many asyncpg.connect at once, as it comes: the"
        " password's key is derived for each, by us once; each followed by the same messages;"
        " later_step_times_faster: time per target of the first step ÷ of the second",
    )


def per_target(step: Step) -> float:
    return (step.ended - step.reserved) / step.tasks


async def connected(fleet: Fleet, tasks: list[tuple[str, Said]]) -> float:
    """Targets per second; closing is not counted, for nobody waits for it."""
    room = asyncio.Semaphore(SLOTS)
    opened: list[asyncpg.Connection] = []

    async def work(database: str, texts: Said) -> None:
        async with room:
            connection = await fleet.connect(database)
            opened.append(connection)
            await say(connection, texts)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for database, texts in tasks:
            group.create_task(work(database, texts))
    took = time.perf_counter() - began
    for connection in opened:
        await connection.close()
    return len(tasks) / took
