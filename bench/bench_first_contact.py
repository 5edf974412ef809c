"""first-contact: one task per database, no connection open, SCRAM; beside bare asyncpg that connects and sends the same."""

import asyncio
import statistics
import time

import asyncpg

from bench.fleet import DATABASES, ROUNDS, SLOTS, Fleet, Step, report, start_fleet
from bench.raw import Messages, send, task_messages
from tests.support.stack import until

SCRIPT = "select 1"
IDLE_TIMEOUT = 120.0  # seconds; idle sessions close after 30


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": []}
    faster: list[float] = []
    with start_fleet(databases=DATABASES, schemas=1) as fleet:
        fleet.a_job("contact", SCRIPT, SCRIPT, group="databases")
        messages = fleet.wait(
            task_messages(fleet, SCRIPT, [(name, None) for name in fleet.databases])
        )
        tasks = list(zip(fleet.databases, messages, strict=True))
        fleet.run("contact")
        fleet.wait(connected(fleet, tasks))
        for _ in range(ROUNDS):
            until(lambda: fleet.wait(fleet.sessions()) == 0, seconds=IDLE_TIMEOUT)
            first, later = fleet.run("contact").steps
            rounds["ours"].append(1 / per_target(first))
            faster.append(per_target(first) / per_target(later))
            rounds["limit"].append(fleet.wait(connected(fleet, tasks)))
    report(
        "first-contact",
        rounds,
        digits=1,
        later_step_times_faster=round(statistics.median(faster), 1),
        goal="ratio at least 0.9, later_step_times_faster at least 5",
        note=f"targets/s, first reservation to last recorded end of a step on {DATABASES} databases,"
        f" {SLOTS} at once, no TLS; limit: as many asyncpg.connect at once, which derives the"
        " password's key for each connection, Muster once; each followed by the same messages;"
        " later_step_times_faster: time per target of the first step ÷ of the second",
    )


def per_target(step: Step) -> float:
    return (step.ended - step.reserved) / step.tasks


async def connected(fleet: Fleet, tasks: list[tuple[str, Messages]]) -> float:
    """Targets per second; closing is not counted: no task waits for it."""
    slots = asyncio.Semaphore(SLOTS)
    opened: list[asyncpg.Connection] = []

    async def work(database: str, messages: Messages) -> None:
        async with slots:
            connection = await fleet.connect(database)
            opened.append(connection)
            await send(connection, messages)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for database, messages in tasks:
            group.create_task(work(database, messages))
    seconds = time.perf_counter() - began
    for connection in opened:
        await connection.close()
    return len(tasks) / seconds
