"""Faults of job accounts with real processes: every role, the engine and its host are processes.

In `make test` one life with a few seeded cells; MUSTER_TEST_CELLS=all (`make chaos`) is a life for
each cell and prints cells hit / declared.
"""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from engine.process.exit_codes import Exit
from muster.core import failpoints
from muster.core.process import Process
from muster.core.settings import Settings
from tests.chaos.cells import KILLS, Lot, action, point
from tests.chaos.test_account_matrix import ALONE, PASSING, STATES
from tests.support.accounts import ControlPlane, start_separate_roles
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.processes import kept

SEED = int(os.environ.get("MUSTER_TEST_SEED", "2"))
FEW = 3
EVERY = os.environ.get("MUSTER_TEST_CELLS") == "all"
LEASE = timedelta(seconds=3)

HIT: set[str] = set()


def chosen() -> list[tuple[Lot, ...]]:
    if EVERY:
        return [(cell,) for cell in ALONE]
    dice = random.Random(SEED)
    states = dice.sample(STATES, FEW)
    return [tuple(Lot("account", (state,), dice.choice(PASSING)) for state in states)]


LIVES = chosen()


@dataclass
class Life:
    """Made, resized, its engine killed, deleted: every working state is passed."""

    control_plane: ControlPlane
    epochs: list[int] = field(default_factory=list)  # of the engine whenever the account was Ready

    def run(self) -> None:
        control_plane = self.control_plane
        control_plane.database("a")
        self.succeeds(control_plane.begin("a"))
        self.check()
        self.succeeds(control_plane.resize("a", "JA200"))
        self.check()
        self.engines()[0].send(signal.SIGKILL)
        control_plane.until(self.recovered)
        self.check()
        charges = [line["epoch"] for line in control_plane.logged("acquired leadership")]
        assert charges == sorted(set(charges)) and set(self.epochs) <= set(charges)
        uid = control_plane.uid("a")
        self.succeeds(control_plane.delete("a", dropSchema="true"))
        assert control_plane.gone("a")
        control_plane.nothing_left(uid)
        schemas = "select from pg_namespace where nspname in ('jobs', 'jobs_internal')"
        assert control_plane.control("a", schemas) == []

    def succeeds(self, begun: httpx.Response) -> None:
        ended = self.control_plane.ended(begun)
        assert ended["status"] == "Succeeded", f"{ended}\n{self.control_plane.told()}"

    def recovered(self) -> bool:
        shown = self.control_plane.show("a")
        return shown["state"] == "Ready" and shown["instance"]["epoch"] > self.epochs[-1]

    def check(self) -> None:
        """One engine, the one that is in charge; never an epoch twice."""
        control_plane = self.control_plane
        shown = control_plane.show("a")
        epoch = control_plane.control("a", "select epoch from jobs_internal.instance")[0][0]
        assert (shown["state"], shown["instance"]["epoch"]) == ("Ready", epoch), (
            control_plane.told()
        )
        assert self.engines() == [control_plane.process("a")], control_plane.told()
        assert epoch > max(self.epochs, default=0)
        self.epochs.append(epoch)

    def engines(self) -> list[Process]:
        return [process for process in self.control_plane.processes() if "engine" in process.argv]


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    declared = sum(len(cells) for cells in LIVES)
    print(f"\naccount cells hit / declared with real processes: {len(HIT)} / {declared}")


@pytest.mark.parametrize("cells", LIVES, ids=lambda cells: "_and_".join(map(str, cells)))
async def test_a_fault_in_a_real_process_costs_nobodys_operation(
    cells: tuple[Lot, ...], settings, db, targets, tmp_path: Path, database_url: str
) -> None:
    short = {"lease": LEASE, "step_limit": LEASE * 0.8}
    async with (
        no_idle_transaction(database_url, longer_than=LEASE.total_seconds()),
        start_separate_roles(settings, targets, tmp_path / "machine", **short) as (
            control_plane,
            processes,
        ),
    ):
        processes.arm({point(cell): action(cell, processes.settings) for cell in cells})
        await asyncio.to_thread(Life(control_plane).run)

    assert {point(cell) for cell in cells} <= failpoints.hits(processes.arms).keys()
    killed = sum(cell.fault in KILLS for cell in cells)
    assert processes.deaths == [-signal.SIGKILL] * killed, processes.log()
    assert set(processes.ends) <= {0, -15}  # asked to stop, each did, one perhaps while starting
    assert await violations(db) == []
    assert {row[0] for row in await db.fetch("select status from operation")} == {"Succeeded"}
    HIT.update(map(str, cells))


@pytest.mark.slow
async def test_an_engine_that_froze_with_its_launcher_wakes_up_and_can_write_nothing(
    settings, targets, tmp_path: Path
) -> None:
    """Nobody asks it to end and nobody refuses it: only the fence is left."""
    quickly = {"workload_mutex_wait": timedelta(seconds=1)}
    do = asyncio.to_thread
    async with start_separate_roles(settings, targets, tmp_path / "machine", **quickly) as (
        control_plane,
        processes,
    ):
        await do(control_plane.create, "a")
        old = await do(control_plane.process, "a")
        processes.send("launcher", signal.SIGSTOP)
        old.send(signal.SIGSTOP)
        async with beside(control_plane, processes.settings):
            ended = await do(control_plane.ended, await do(control_plane.resize, "a", "JA200"))
            assert ended["status"] == "Succeeded"
            processes.send("fsm", signal.SIGSTOP)  # they serve the Workload API

            old.send(signal.SIGCONT)

            await do(control_plane.until, lambda: not old.alive)
            processes.send("fsm", signal.SIGCONT)
            processes.send("launcher", signal.SIGCONT)
            await do(control_plane.until, lambda: control_plane.exit_code(epoch=1) is not None)
            assert await do(control_plane.exit_code, 1) == Exit.FENCED
            instance = "select epoch, generation from jobs_internal.instance"
            assert tuple((await do(control_plane.control, "a", instance))[0]) == (2, 2)
            assert (await do(control_plane.show, "a"))["state"] == "Ready"


def beside(control_plane: ControlPlane, settings: Settings):
    """A second launcher, as on another machine."""
    folder = control_plane.folder / "second"
    folder.mkdir()
    return kept(replace(settings, launcher_name="L2", launcher_dir=folder), folder, "launcher")
