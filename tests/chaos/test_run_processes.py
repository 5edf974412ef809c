"""Every place on the road × every fault with real processes: the engine, its hosts, both servers.

A few seeded cells in `make test`; MUSTER_TEST_CELLS=all (`make chaos`) runs every one, or as many as
MUSTER_TEST_FAULTS says (`make chaos FAULTS=100 SEED=7`), drawn by the seed; it prints what came of it.
"""

import asyncio
import contextlib
import itertools
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass

import pytest

from fsm.launch.protocol import Kind
from tests.chaos.run_cells import POINTS, begin, expected_end, overdone, prepare
from tests.chaos.run_invariants import violations
from tests.support import postgres as server
from tests.support.engine_processes import EngineProcesses, start_processes
from tests.support.fleet import plane
from tests.support.launching import until

pytestmark = pytest.mark.newest
together = pytest.mark.asyncio(loop_scope="module")

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
EVERY = os.environ.get("MUSTER_TEST_CELLS") == "all"
FAULTS = int(os.environ.get("MUSTER_TEST_FAULTS") or 0)
KILLED, STOPPED = "is killed", "is stopped"
CONTROL, TARGET = "while the control database crashes", "while the targets crash"
PASSAGE = 1.0  # seconds that a process stays where a server crashes under it


@dataclass(frozen=True)
class Cell:
    point: str
    fault: str
    number: int = 0

    @property
    def kind(self) -> Kind:
        return Kind.ENGINE if self.point.startswith("core.") else Kind.HOST

    @property
    def action(self) -> str:
        return {KILLED: "kill times:1", STOPPED: "stop times:1"}.get(
            self.fault, f"sleep:{PASSAGE} times:1"
        )

    def __str__(self) -> str:
        return f"{self.number} {self.point} {self.fault}".replace(" ", "_")


CELLS = [Cell(point, fault) for fault in (KILLED, STOPPED, CONTROL, TARGET) for point in POINTS]


def chosen() -> list[Cell]:
    dice = random.Random(SEED)
    if not EVERY:  # one of each fault, and of both kinds of processes
        kinds = dice.sample([Kind.ENGINE, Kind.HOST], 2) * 2
        faults = zip((KILLED, STOPPED, CONTROL, TARGET), kinds, strict=True)
        return [
            dice.choice([cell for cell in CELLS if (cell.fault, cell.kind) == each])
            for each in faults
        ]
    if not FAULTS:
        return CELLS
    rounds = (dice.sample(CELLS, len(CELLS)) for _ in itertools.count())
    drawn = itertools.islice(itertools.chain.from_iterable(rounds), FAULTS)
    return [Cell(cell.point, cell.fault, number) for number, cell in enumerate(drawn, 1)]


CHOSEN = chosen()
HIT: set[Cell] = set()
SEEN: Counter[str] = Counter()


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    print(f"\nfaults injected: {SEEN['faults']}, violations: {SEEN['violations']}")
    print(f"road cells hit / declared with real processes: {len(HIT)} / {len(CHOSEN)}")


@pytest.fixture(scope="module")
def servers():
    """Of the control database and of the fleet: both of our own, since they are to crash."""
    with (
        server.running(migrated=False, durable=True) as control,
        server.running(migrated=False, durable=True) as fleet,
    ):
        yield control, fleet


@contextlib.asynccontextmanager
async def jobs(postgres, servers, folder):
    async with (
        plane(postgres) as (settings, db),
        start_processes(settings, db, *servers, folder) as processes,
    ):
        await prepare(processes.fleet)
        yield processes


@pytest.fixture(scope="module")
def make_processes(postgres, servers, tmp_path_factory):
    return lambda: jobs(postgres, servers, tmp_path_factory.mktemp("processes"))


@together
@pytest.mark.parametrize("cell", CHOSEN, ids=str)
async def test_a_fault_of_a_real_process_leaves_nothing_wrong(
    cell: Cell, processes: EngineProcesses, servers
):
    fleet = processes.fleet
    ends, stops = len(processes.ends), len(processes.stops)
    processes.arm({cell.point: cell.action})

    async with processes.kept():
        run = await begin(fleet, cell.point)
        if cell.fault in {CONTROL, TARGET}:
            await crash(processes, cell, *servers)
        try:
            ended = await fleet.ended(run, 60)
        except AssertionError as error:
            SEEN["violations"] += 1
            raise AssertionError(f"{error}\n{processes.log()}") from None

    SEEN["faults"] += 1
    assert processes.hits()[cell.point]
    processes.arm({})
    found = await violations(fleet)
    if cell.fault != TARGET:  # a sequence jumps when its server crashes
        found += await overdone(fleet, run)
    SEEN["violations"] += len(found)
    assert found == [], processes.log()
    await check_end(processes, cell, run, ended)
    assert processes.ends[ends:] == ([(cell.kind, -signal.SIGKILL)] if cell.fault == KILLED else [])
    assert processes.stops[stops:] == ([cell.kind] if cell.fault == STOPPED else [])
    HIT.add(cell)


async def crash(
    processes: EngineProcesses, cell: Cell, control: server.Postgres, targets: server.Postgres
) -> None:
    """As soon as somebody has come to the place, and stands there."""
    await until(lambda: processes.hits().get(cell.point))
    machine = (control if cell.fault == CONTROL else targets).machine
    await asyncio.to_thread(machine.crash)
    await machine.revive()
    if cell.fault == CONTROL:
        await processes.fleet.renew()


async def check_end(processes: EngineProcesses, cell: Cell, run, ended: str) -> None:
    """What was not cancelled succeeds; but where a target forgot, nobody may claim to know."""
    if expected_end(cell.point) != "Succeeded":
        assert ended == expected_end(cell.point), processes.log()
    elif ended != "Succeeded":
        failed = [t for t in await processes.fleet.targets_of(run) if t["lifecycle"] != "Succeeded"]
        assert cell.fault == TARGET, processes.log()
        assert {t["end_reason"] for t in failed} == {"OutcomeUnknown"}, processes.log()


def test_every_place_on_the_road_is_a_cell():
    assert len(CELLS) == 4 * len(POINTS) == 4 * 41
