"""Every place on the road × every fault, in one process: the engine and its hosts are real, on real databases.

A few seeded cells in `make test`; MUSTER_TEST_CELLS=all (`make chaos`) runs every one and prints cells
hit / declared.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from engine.core.runs import run_actions
from engine.core.main import Core
from engine.targets import server_retry
from muster.core import failpoints
from tests.chaos.run_cells import POINTS, begin, expected_end, overdone, prepare
from tests.chaos.run_invariants import violations
from tests.support.fleet import Fleet, start_fleet, plane

pytestmark = pytest.mark.newest
together = pytest.mark.asyncio(loop_scope="module")

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
EVERY = os.environ.get("MUSTER_TEST_CELLS") == "all"
FEW = 6
DATABASES = 3
RAISES, REPLACED = "raises", "the core is replaced"
# Where an attempt breaks in the middle, by a mistake of ours: it may end Failed, and must not lie.
BREAKS = {
    "host.before_start", "host.started", "host.intended", "host.before_verify", "host.verified",
    "host.spooled", "host.finished",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    point: str
    fault: str

    def __str__(self) -> str:
        return f"{self.point}: {self.fault}".replace(" ", "_")


CELLS = [Cell(point, RAISES) for point in POINTS] + [
    Cell(point, REPLACED) for point in POINTS if point.startswith("core.")
]
CHOSEN = CELLS if EVERY else random.Random(SEED).sample(CELLS, FEW)
HIT: set[Cell] = set()


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    print(f"\nroad cells hit / declared in one process: {len(HIT)} / {len(CHOSEN)}")


@contextlib.asynccontextmanager
async def jobs(postgres, targets, folder):
    async with (
        plane(postgres) as (settings, db),
        start_fleet(settings, db, targets, folder, databases=DATABASES) as fleet,
    ):
        await prepare(fleet)
        yield fleet


@pytest.fixture(scope="module")
def make_fleet(postgres, targets, tmp_path_factory):
    return lambda: jobs(postgres, targets, tmp_path_factory.mktemp("matrix"))


@together
@pytest.mark.parametrize("cell", CHOSEN, ids=str)
async def test_a_fault_on_the_road_leaves_nothing_wrong(cell: Cell, fleet: Fleet, monkeypatch):
    monkeypatch.setattr(run_actions, "FAILURE_PAUSE", 0.5)
    monkeypatch.setattr(server_retry, "UNREACHABLE_TIMEOUT", 0.0)
    action: str | Callable = "raise times:1" if cell.fault == RAISES else Replacement(fleet)

    with failpoints.armed({cell.point: action}) as armed:
        async with fleet.kept() as ends:
            run = await begin(fleet, cell.point)
            ended = await fleet.ended(run)
        assert armed.hits[cell.point]

    may = {expected_end(cell.point)}
    if cell.fault == RAISES and cell.point in BREAKS:
        may |= {"Failed"}
    assert ended in may
    assert [one for one in ends if isinstance(one.living, Core)] == [], "a core ended by itself"
    assert await overdone(fleet, run) == []
    assert await violations(fleet) == []
    HIT.add(cell)


class Replacement:
    """At the first passage the core dies, and another one takes charge."""

    def __init__(self, fleet: Fleet) -> None:
        self._here = fleet
        self._done = False

    async def __call__(self) -> None:
        if self._done:
            return
        self._done = True
        asyncio.get_running_loop().call_soon(self._replace)
        await asyncio.Event().wait()  # nothing of it happens any more

    def _replace(self) -> None:
        self._replacing = asyncio.create_task(self._begin_anew())

    async def _begin_anew(self) -> None:
        fleet = self._here
        for one in [one for one in fleet.alive if isinstance(one.living, Core)]:
            await fleet.kill(one)
        await fleet.core()


def test_every_place_on_the_road_is_a_cell():
    assert len(POINTS) == 41
    assert {cell.point for cell in CELLS if cell.fault == RAISES} == set(POINTS)
