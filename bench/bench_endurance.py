"""endurance: 20 rounds of fanout-write while history grows; the last three rounds beside the first three."""

import itertools
import os
import statistics

from bench.fleet import DATABASES, SCHEMAS, SIZE, TARGETS, UPDATE, report, start_fleet
from bench.raw import KeptConnections, task_messages

ROUNDS = int(os.environ.get("BENCH_ENDURANCE_ROUNDS", "20"))
COMPARED = 3  # rounds at each end


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": []}
    with start_fleet(databases=DATABASES, schemas=SCHEMAS) as fleet:
        fleet.a_job("write", UPDATE)
        targets = [(d, s) for s, d in itertools.product(fleet.schemas, fleet.databases)]
        messages = fleet.wait(task_messages(fleet, UPDATE, targets))
        tasks = [(database, each) for (database, _), each in zip(targets, messages, strict=True)]
        connections = fleet.wait(KeptConnections.of(fleet))
        fleet.run("write")
        before = fleet.wait(fleet.root.fetchval(SIZE))
        for _ in range(ROUNDS):
            rounds["ours"].append(fleet.run("write").steps[0].rate)
            rounds["limit"].append(fleet.wait(connections.rate(tasks)))
        after = fleet.wait(fleet.root.fetchval(SIZE))
        fleet.wait(connections.close())
    ratios = [ours / limit for ours, limit in zip(*rounds.values(), strict=True)]
    first, last = statistics.median(ratios[:COMPARED]), statistics.median(ratios[-COMPARED:])
    report(
        "endurance",
        rounds,
        digits=None,
        last_to_first=round(last / first, 3),
        ratios=[round(ratio, 3) for ratio in ratios],
        bytes_per_target=round((after - before) / (TARGETS * ROUNDS)),
        goal="last_to_first at least 0.9",
        note=f"tasks/s of `{UPDATE}` on {TARGETS} targets, {ROUNDS} rounds, each followed by raw asyncpg;"
        f" last_to_first: the median ratio of the last {COMPARED} rounds ÷ of the first {COMPARED};"
        " bytes: growth of the control database",
    )
