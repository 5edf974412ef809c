"""tenants: 400 databases, one target each, two steps; with a connection for each database, and with 100."""

import os

from bench.fleet import ROUNDS, Fleet, report, start_fleet
from bench.fleet import Step as StepTimes
from tests.support.stack import until

DATABASES = int(os.environ.get("BENCH_TENANTS", "400"))
FEW = 100  # connections, fewer than databases
SCRIPT = "select 1"
IDLE_TIMEOUT = 120.0  # seconds; idle sessions close after 30
CONNECTS = """
select sum(sessions)::bigint from pg_stat_database where datname = any($1)
"""


def main() -> None:
    rounds: dict[str, list[float]] = {"ours": [], "limit": []}
    with start_fleet(databases=DATABASES, schemas=1, sessions=DATABASES + 28) as fleet:
        fleet.a_job("tenants", SCRIPT, SCRIPT, group="databases")
        for _ in range(ROUNDS):
            until(lambda: fleet.wait(fleet.sessions()) == 0, seconds=IDLE_TIMEOUT)
            first, second = fleet.run("tenants").steps
            rounds["ours"].append(rate(second))
            rounds["limit"].append(rate(first))
    with start_fleet(databases=DATABASES, schemas=1, sessions=FEW) as fleet:
        fleet.a_job("one", SCRIPT, group="databases")
        fleet.a_job("two", SCRIPT, SCRIPT, group="databases")
        connects = [opened(fleet, "two") - opened(fleet, "one") for _ in range(ROUNDS)]
    report(
        "tenants",
        rounds,
        digits=1,
        connects_of_second_step_with_few_connections=connects,
        goal="ratio at least 2; connects at most 310",
        note=f"targets/s of a step on {DATABASES} databases; ours: the second step, limit: the first step, which"
        f" connects; connects: how many more a run of two steps opens than a run of one, with {FEW} connections",
    )


def rate(step: StepTimes) -> float:
    return step.tasks / (step.ended - step.reserved)


def opened(fleet: Fleet, job: str) -> int:
    """Connections that a run opens, from none."""
    until(lambda: fleet.wait(fleet.sessions()) == 0, seconds=IDLE_TIMEOUT)
    before = fleet.wait(fleet.at_server(CONNECTS, fleet.databases))
    fleet.run(job)
    until(lambda: fleet.wait(fleet.sessions()) == 0, seconds=IDLE_TIMEOUT)
    return fleet.wait(fleet.at_server(CONNECTS, fleet.databases)) - before
