"""reports: summary, errors and messages of a run of 100,000 targets and of one of 1,000,000."""

import os
import statistics
import time
from uuid import UUID

from bench.fleet import DATABASES, Fleet, start_fleet
from bench.report import print_line

SIZES = [int(size) for size in os.environ.get("BENCH_REPORTS", "100000,1000000").split(",")]
REPORTS = ("summary", "errors", "messages", "targets")
REPEATS = 11
SCRIPT = "select 1"


def main() -> None:
    milliseconds: dict[int, dict[str, float]] = {}
    with start_fleet(databases=DATABASES, schemas=1) as fleet:
        for size in SIZES:
            fleet.a_job(f"reports{size}", SCRIPT, group=fleet.numbered_schemas(size))
            run = fleet.finished(f"reports{size}")
            milliseconds[size] = {
                name: measured(fleet, f"reports{size}", run, name) for name in REPORTS
            }
    print_line(
        {
            "name": "reports",
            "milliseconds": milliseconds,
            "goal": "summary, errors and messages at most 50 ms each; at 1,000,000 at most twice that",
            "note": f"median of {REPEATS} GETs of an ended run, by its number of targets",
        }
    )


def measured(fleet: Fleet, job: str, run: UUID, name: str) -> float:
    path = f"{fleet.account}/jobs/{job}/executions/{run}/{name}"
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        fleet.stack.get(path)
        times.append((time.perf_counter() - began) * 1000)
    return round(statistics.median(times), 1)
