"""fanout: `select 1` on 100 schemas of each of 100 databases, beside raw asyncpg and pgqueuer."""

import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench import cpu
from bench.fleet import DATABASES, ROUNDS, SCHEMAS, SLOTS, TARGETS, Fleet, Took, a_fleet, line
from bench.peer import a_peer
from bench.raw import Kept, Said, said, say_bare

SCRIPT = "select 1"
QUEUE = "pgqueuer"
T = TypeVar("T")
Cpu = dict[str, float]  # seconds by part


def main() -> None:
    with a_fleet(databases=DATABASES, schemas=SCHEMAS) as fleet:
        fleet.a_job("fanout", SCRIPT)
        fleet.a_job("touch", SCRIPT, group="databases")
        places = [(d, s) for s, d in itertools.product(fleet.schemas, fleet.databases)]
        texts = fleet.do(said(fleet, SCRIPT, places, together=True))
        tasks = [(database, each) for (database, _), each in zip(places, texts, strict=True)]
        kept = fleet.do(Kept.of(fleet))
        queue = fleet.do(fleet.a_database(QUEUE))
        with a_peer(queue, fleet.target, tasks, at_once=SLOTS) as ask:
            fleet.run("fanout")
            found = rounds(fleet, tasks, kept, ask)
        fleet.do(kept.close())
    tell(found)


@dataclass
class Found:
    """Of each round."""

    took: list[Took] = field(default_factory=list)
    rates: dict[str, list[float]] = field(
        default_factory=lambda: {side: [] for side in ("ours", "limit", "peer", "bare")}
    )
    cpu: dict[str, list[Cpu]] = field(default_factory=lambda: {"ours": [], "limit": []})


def rounds(
    fleet: Fleet, tasks: list[tuple[str, Said]], kept: Kept, ask: Callable[[str], float]
) -> Found:
    found = Found()
    for _ in range(ROUNDS):
        fleet.run("touch")  # whatever the others took, its sessions are open
        took, spent = with_cpu(fleet, lambda: fleet.run("fanout"))
        if took.steps[0].tasks != len(tasks):
            raise SystemExit(f"{took.steps[0].tasks} tasks instead of {len(tasks)}")
        found.took.append(took)
        found.cpu["ours"].append(spent)
        found.rates["ours"].append(took.steps[0].rate)
        rate, spent = with_cpu(fleet, lambda: fleet.do(kept.rate(tasks)))
        found.cpu["limit"].append(spent)
        found.rates["limit"].append(rate)
        found.rates["peer"].append(ask("drain"))
        found.rates["bare"].append(fleet.do(kept.rate(tasks, say_bare)))
    return found


def with_cpu(fleet: Fleet, do: Callable[[], T]) -> tuple[T, Cpu]:
    before = fleet.cpu()
    done = do()
    return done, {part: cpu.between(before[part], used) for part, used in fleet.cpu().items()}


def tell(found: Found) -> None:
    middle = {side: statistics.median(values) for side, values in found.rates.items()}
    took = found.took
    line(
        "fanout",
        found.rates,
        digits=None,
        ratio_to_peer=round(middle["ours"] / middle["peer"], 2),
        ratio_to_bare_loop=round(middle["ours"] / middle["bare"], 3),
        bare=round(middle["bare"]),
        seconds_to_planned=_middle([each.steps[0].planned - each.asked for each in took]),
        seconds_to_first_start=_middle([each.steps[0].started - each.asked for each in took]),
        seconds_of_the_whole_run=_middle([each.ended - each.asked for each in took]),
        cpu_ms_per_task=_per_task(found.cpu["ours"], ("core", "host", "control", "targets")),
        cpu_ms_per_task_of_limit=_per_task(found.cpu["limit"], ("client", "targets")),
        goal="ratio at least 0.6, ratio_to_peer at least 1.3",
        note=f"tasks/s, first start to last recorded end; {TARGETS} targets on {DATABASES} databases,"
        f" {SLOTS} at once on every side, connections kept; limit: one process of asyncpg on uvloop"
        " saying the same messages; peer: pgqueuer 1.6 whose job says them",
    )


def _per_task(spent: list[Cpu], parts: tuple[str, ...]) -> Cpu:
    return {
        part: round(statistics.median(each[part] for each in spent) * 1000 / TARGETS, 3)
        for part in parts
    }


def _middle(values: list[float]) -> float:
    return round(statistics.median(values), 2)
