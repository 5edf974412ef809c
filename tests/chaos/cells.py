"""The matrix: every working state of every lifecycle × every fault."""

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Any

from fsm.lifecycles import LIFECYCLES
from fsm.lifecycle_table import Lifecycle, Step
from muster.core.failpoints import FailpointError
from muster.core.settings import Settings

# Each is armed once, at one state of one lifecycle.
KILLS = {
    "killed before commit 1": "fsm.before_commit_1",
    "killed after commit 1": "fsm.after_commit_1",
    "killed after its effect": "fsm.after_effect",
    "killed before commit 2": "fsm.before_commit_2",
    "killed after commit 2": "fsm.after_commit_2",
}
PAUSES = {
    "pauses longer than the lease before its effect": "fsm.after_commit_1",
    "pauses longer than the lease after its effect": "fsm.after_effect",
}
WRAPPED = ("runs twice", "raises after its effect", "exceeds its limit")
RAISES = ("raises", "raises until it gives up")
FAULTS = (*WRAPPED, *RAISES, *KILLS, *PAUSES)


@dataclass(frozen=True)
class Lot:
    """Cells that one life goes through: a fault, once in each of these states."""

    lifecycle: str
    states: tuple[str, ...]
    fault: str

    @property
    def state(self) -> str:
        """Of a lot with one cell."""
        return self.states[0]

    def points(self, name: str) -> list[str]:
        return [f"{name}@{self.lifecycle}.{state}" for state in self.states]

    def __str__(self) -> str:
        states = self.states[0] if len(self.states) == 1 else "each state"
        return f"{self.lifecycle}: {states} {self.fault}".replace(" ", "_")


STATES = {
    name: tuple(str(row.state) for row in lifecycle.rows.values() if isinstance(row, Step))
    for name, lifecycle in LIFECYCLES.items()
    if name != "account"  # needs launchers and node agents: test_account_matrix.py
}
TOGETHER = [Lot(name, states, fault) for name, states in STATES.items() for fault in FAULTS]
ALONE = [Lot(lot.lifecycle, (state,), lot.fault) for lot in TOGETHER for state in lot.states]
# MUSTER_TEST_CELLS=all (`make chaos`): a life for each cell, so that faults can't hide one another.
LOTS = ALONE if os.environ.get("MUSTER_TEST_CELLS") == "all" else TOGETHER


class Once:
    """Work that misbehaves the first time it is done."""

    def __init__(self, work: Any, fault: str) -> None:
        self.work, self.fault, self.hits = work, fault, 0
        self.__name__ = work.__name__

    async def __call__(self, ctx: Any) -> Any:
        outcome = await self.work(ctx)
        self.hits += 1
        match self.fault:
            case "runs twice":
                return await self.work(ctx)
            case "raises after its effect" if self.hits == 1:
                raise FailpointError("broken after the effect")
            case "exceeds its limit" if self.hits == 1:
                await asyncio.sleep(60)
        return outcome


def wrapped(lot: Lot) -> tuple[Lifecycle, dict[str, Once]]:
    """The lifecycle of the lot with the work of its states replaced."""
    table = LIFECYCLES[lot.lifecycle]
    faulty: dict[str, Once] = {}
    rows = []
    for row in table.rows.values():
        if isinstance(row, Step) and row.state in lot.states:
            faulty[row.state] = Once(row.work, lot.fault)
            row = replace(row, work=faulty[row.state])
        rows.append(row)
    other = Lifecycle(table.name, rows, shown_as=table.shown_as, interrupts=table.interrupts)
    return other, faulty


def point(lot: Lot) -> str:
    """Where a lot with one cell is armed in a real process; a work that ends and is done again has run twice."""
    name = KILLS.get(lot.fault) or PAUSES.get(lot.fault)
    if name is None:
        twice = lot.fault in {"runs twice", "raises after its effect"}
        name = "fsm.after_effect" if twice else "fsm.effect"
    return lot.points(name)[0]


def action(lot: Lot, settings: Settings) -> str:
    lease = settings.lease.total_seconds()
    if lot.fault in KILLS:
        return "kill times:1"
    if lot.fault in PAUSES:
        return f"sleep:{lease + 0.5} times:1"
    if lot.fault == "exceeds its limit":
        return f"sleep:{lease} times:1"
    return "raise times:1"
