"""memory: what the engine's core and the hosts hold for targets of a run that have not ended."""

import os

from bench import memory
from bench.fleet import DATABASES, SLOTS, Fleet, start_fleet
from bench.report import print_line
from tests.support.stack import until

LIVE = int(os.environ.get("BENCH_LIVE", "100000"))
FEW = SLOTS  # a run before that opens the connections, so that they do not count
PER = 100_000
GOAL = 100  # MB per 100,000 targets
SLEEP = "select pg_sleep(3600)"
STARTED = """
select count(*) filter (where lifecycle = 'InProgress') as running, count(*) as planned
  from jobs_internal.target_execution where job_execution_id = $1
"""


def main() -> None:
    with start_fleet(databases=DATABASES, schemas=1) as fleet:
        for name, count in (("few", FEW), ("many", LIVE)):
            fleet.a_job(name, SLEEP, group=fleet.numbered_schemas(count))
        few = held(fleet, "few", FEW)
        many = held(fleet, "many", LIVE)
    each = {part: round((many[part] - few[part]) * PER / (LIVE - FEW), 1) for part in many}
    print_line(
        {
            "name": "memory",
            "ours": round(sum(each.values()), 1),
            "ratio": round(sum(each.values()) / GOAL, 3),
            "parts": each,
            "with_few": {part: round(megabytes, 1) for part, megabytes in few.items()},
            "with_many": {part: round(megabytes, 1) for part, megabytes in many.items()},
            "goal": f"at most {GOAL} MB",
            "note": f"MB (PSS) for each {PER} live targets: {LIVE} against {FEW} on {DATABASES} databases,"
            f" {SLOTS} of them running; ratio: to the goal",
        }
    )


def held(fleet: Fleet, job: str, targets: int) -> dict[str, float]:
    """Megabytes by part while the run has all its targets planned and as many running as there are slots."""

    def full() -> bool:
        row = fleet.wait(fleet.root.fetchrow(STARTED, run))
        return row["planned"] == targets and row["running"] == min(targets, SLOTS)

    run = fleet.start(job)
    until(full, seconds=300)
    megabytes = {part: memory.of(fleet.stack.processes(part)) for part in ("engine", "host")}
    fleet.cancel(job, run)
    return megabytes


if __name__ == "__main__":
    main()
