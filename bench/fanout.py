"""A script on 100 schemas of each of 100 databases, beside raw asyncpg and pgqueuer that send the same messages."""

import itertools
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bench import cpu
from bench.fleet import (
    DATABASES,
    ROUNDS,
    SCHEMAS,
    SLOTS,
    TARGETS,
    Fleet,
    RunTimes,
    report,
    start_fleet,
)
from bench.peer import a_peer
from bench.raw import KeptConnections, Messages, send_bare, task_messages
from bench.report import compare, median

QUEUE = "pgqueuer"
T = TypeVar("T")
Cpu = dict[str, float]  # seconds by part


def run(name: str, script: str, *, goal: str, batched: bool = False) -> None:
    """`batched`: a host may send the script in a read batch; its messages are then those of a batch."""
    with start_fleet(databases=DATABASES, schemas=SCHEMAS, batch_reads=batched) as fleet:
        fleet.a_job("fanout", script)
        fleet.a_job("touch", "select 1", group="databases")
        targets = [(d, s) for s, d in itertools.product(fleet.schemas, fleet.databases)]
        messages = fleet.wait(task_messages(fleet, script, targets, together=batched))
        tasks = [(database, each) for (database, _), each in zip(targets, messages, strict=True)]
        connections = fleet.wait(KeptConnections.of(fleet))
        queue = fleet.wait(fleet.a_database(QUEUE))
        with a_peer(queue, fleet.target, tasks, at_once=SLOTS) as ask:
            fleet.run("fanout")
            rounds = measure(fleet, tasks, connections, ask)
        fleet.wait(connections.close())
    print_report(name, script, rounds, goal)


@dataclass
class Rounds:
    """The measurements of each round."""

    times: list[RunTimes] = field(default_factory=list)
    rates: dict[str, list[float]] = field(
        default_factory=lambda: {side: [] for side in ("ours", "limit", "peer", "bare")}
    )
    cpu: dict[str, list[Cpu]] = field(default_factory=lambda: {"ours": [], "limit": []})


def measure(
    fleet: Fleet,
    tasks: list[tuple[str, Messages]],
    connections: KeptConnections,
    ask: Callable[[str], float],
) -> Rounds:
    rounds = Rounds()
    for _ in range(ROUNDS):
        fleet.run("touch")  # opens its sessions again that the other sides replaced
        times, spent = with_cpu(fleet, lambda: fleet.run("fanout"))
        if times.steps[0].tasks != len(tasks):
            raise SystemExit(f"{times.steps[0].tasks} tasks instead of {len(tasks)}")
        rounds.times.append(times)
        rounds.cpu["ours"].append(spent)
        rounds.rates["ours"].append(times.steps[0].rate)
        rate, spent = with_cpu(fleet, lambda: fleet.wait(connections.rate(tasks)))
        rounds.cpu["limit"].append(spent)
        rounds.rates["limit"].append(rate)
        rounds.rates["peer"].append(ask("drain"))
        rounds.rates["bare"].append(fleet.wait(connections.rate(tasks, send_bare)))
    return rounds


def with_cpu(fleet: Fleet, do: Callable[[], T]) -> tuple[T, Cpu]:
    before = fleet.cpu()
    result = do()
    return result, {part: cpu.between(before[part], used) for part, used in fleet.cpu().items()}


def print_report(name: str, script: str, rounds: Rounds, goal: str) -> None:
    times, rates = rounds.times, rounds.rates
    to_bare, to_bare_range = compare(rates["ours"], rates["bare"])
    report(
        name,
        rates,
        digits=None,
        ratio_to_bare_loop=to_bare,
        ratio_to_bare_loop_range=to_bare_range,
        bare=median(rates["bare"], None),
        seconds_to_planned=median([each.steps[0].planned - each.requested for each in times], 2),
        seconds_to_first_start=median(
            [each.steps[0].started - each.requested for each in times], 2
        ),
        seconds_of_the_whole_run=median([each.ended - each.requested for each in times], 2),
        cpu_ms_per_task=_per_task(rounds.cpu["ours"], ("core", "host", "control", "targets")),
        cpu_ms_per_task_of_limit=_per_task(rounds.cpu["limit"], ("client", "targets")),
        script=script,
        goal=goal,
        note=f"tasks/s, first start to last recorded end; {TARGETS} targets on {DATABASES} databases,"
        f" {SLOTS} at once on every side, connections kept; limit: one process of asyncpg on uvloop"
        " sending the same messages; peer: pgqueuer 1.6 whose job sends them",
    )


def _per_task(spent: list[Cpu], parts: tuple[str, ...]) -> Cpu:
    return {
        part: round(statistics.median(each[part] for each in spent) * 1000 / TARGETS, 3)
        for part in parts
    }
