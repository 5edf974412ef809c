"""growth: the rate of a run of 1,000,000 targets beside the rate of a run of 10,000, and what each target costs."""

import os
from dataclasses import dataclass

from bench import memory
from bench.fleet import DATABASES, SIZE, SLOTS, Fleet, report, start_fleet

SMALL = int(os.environ.get("BENCH_SMALL", "10000"))
LARGE = int(os.environ.get("BENCH_LARGE", "1000000"))
ROUNDS = int(os.environ.get("BENCH_GROWTH_ROUNDS", "1"))
SCRIPT = "select 1"


@dataclass
class Measured:
    rate: float  # tasks per second
    megabytes: dict[str, float]  # of core and host at the end of the run
    bytes_each: float  # of the control database, for each target


def main() -> None:
    with start_fleet(databases=DATABASES, schemas=1) as fleet:
        for name, count in (("small", SMALL), ("large", LARGE)):
            fleet.a_job(name, SCRIPT, group=fleet.numbered_schemas(count))
        fleet.run("small")
        rounds = [
            (measure(fleet, "small", SMALL), measure(fleet, "large", LARGE)) for _ in range(ROUNDS)
        ]
    small, large = rounds[-1]
    report(
        "growth",
        {"ours": [two.rate for _, two in rounds], "limit": [one.rate for one, _ in rounds]},
        digits=None,
        megabytes_small=small.megabytes,
        megabytes_large=large.megabytes,
        bytes_per_target_small=round(small.bytes_each),
        bytes_per_target_large=round(large.bytes_each),
        goal="ratio at least 0.9",
        note=f"tasks/s; ours: a run of {LARGE} targets, limit: a run of {SMALL} targets before it, on"
        f" {DATABASES} databases with {SLOTS} at once; bytes: growth of the control database",
    )


def measure(fleet: Fleet, job: str, targets: int) -> Measured:
    before = fleet.wait(fleet.root.fetchval(SIZE))
    times = fleet.run(job)
    after = fleet.wait(fleet.root.fetchval(SIZE))
    megabytes = {
        part: round(memory.of(fleet.stack.processes(part)), 1) for part in ("engine", "host")
    }
    return Measured(times.steps[0].rate, megabytes, (after - before) / targets)


if __name__ == "__main__":
    main()
