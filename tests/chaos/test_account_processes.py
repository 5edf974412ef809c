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
from tests.support.accounts import Stack, apart
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

    here: Stack
    epochs: list[int] = field(default_factory=list)  # of the engine whenever the account was Ready

    def run(self) -> None:
        here = self.here
        here.database("a")
        self.succeeds(here.begin("a"))
        self.check()
        self.succeeds(here.resize("a", "JA200"))
        self.check()
        self.engines()[0].send(signal.SIGKILL)
        here.until(self.recovered)
        self.check()
        charges = [line["epoch"] for line in here.logged("acquired leadership")]
        assert charges == sorted(set(charges)) and set(self.epochs) <= set(charges)
        uid = here.uid("a")
        self.succeeds(here.delete("a", dropSchema="true"))
        assert here.gone("a")
        here.nothing_left(uid)
        schemas = "select from pg_namespace where nspname in ('jobs', 'jobs_internal')"
        assert here.control("a", schemas) == []

    def succeeds(self, begun: httpx.Response) -> None:
        ended = self.here.ended(begun)
        assert ended["status"] == "Succeeded", f"{ended}\n{self.here.told()}"

    def recovered(self) -> bool:
        shown = self.here.show("a")
        return shown["state"] == "Ready" and shown["instance"]["epoch"] > self.epochs[-1]

    def check(self) -> None:
        """One engine, the one that is in charge; never an epoch twice."""
        here = self.here
        shown = here.show("a")
        epoch = here.control("a", "select epoch from jobs_internal.instance")[0][0]
        assert (shown["state"], shown["instance"]["epoch"]) == ("Ready", epoch), here.told()
        assert self.engines() == [here.process("a")], here.told()
        assert epoch > max(self.epochs, default=0)
        self.epochs.append(epoch)

    def engines(self) -> list[Process]:
        return [process for process in self.here.processes() if "engine" in process.argv]


@pytest.fixture(scope="module", autouse=True)
def count():
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
        apart(settings, targets, tmp_path / "machine", **short) as (here, processes),
    ):
        processes.arm({point(cell): action(cell, processes.settings) for cell in cells})
        await asyncio.to_thread(Life(here).run)

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
    async with apart(settings, targets, tmp_path / "machine", **quickly) as (here, processes):
        await do(here.create, "a")
        old = await do(here.process, "a")
        processes.send("launcher", signal.SIGSTOP)
        old.send(signal.SIGSTOP)
        async with beside(here, processes.settings):
            ended = await do(here.ended, await do(here.resize, "a", "JA200"))
            assert ended["status"] == "Succeeded"
            processes.send("fsm", signal.SIGSTOP)  # they serve the Workload API

            old.send(signal.SIGCONT)

            await do(here.until, lambda: not old.alive)
            processes.send("fsm", signal.SIGCONT)
            processes.send("launcher", signal.SIGCONT)
            await do(here.until, lambda: here.exit_code(epoch=1) is not None)
            assert await do(here.exit_code, 1) == Exit.FENCED
            instance = "select epoch, generation from jobs_internal.instance"
            assert tuple((await do(here.control, "a", instance))[0]) == (2, 2)
            assert (await do(here.show, "a"))["state"] == "Ready"


def beside(here: Stack, settings: Settings):
    """A second launcher, as on another machine."""
    folder = here.folder / "second"
    folder.mkdir()
    return kept(replace(settings, launcher_name="L2", launcher_dir=folder), folder, "launcher")
