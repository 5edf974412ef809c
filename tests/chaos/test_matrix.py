"""Every step × every fault, inside one process: named failpoints, virtual time, a real database."""

import pytest

from muster.core import failpoints
from tests.chaos import arming
from tests.chaos.cells import FAULTS, LOTS, STATES, Lot
from tests.support.fake_clusters import FakeClusters
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.lifecycle_fixture import ResourceHandle, Lifecycles, unhurried


class Life:
    """What a customer asks for from the first PUT to the last DELETE, and what came of it."""

    def __init__(self, lifecycles: Lifecycles, lifecycle: str) -> None:
        self.lifecycles = lifecycles
        self.lifecycle = lifecycle
        self.acked: list[ResourceHandle] = []
        self.first: ResourceHandle | None = None

    async def prepare(self) -> None:
        """What has to be there before the fault is armed."""
        if self.lifecycle != "server":
            self.server = await self.ack(self.lifecycles.put_server())
        if self.lifecycle == "resourceGroup":
            await self.ack(self.lifecycles.put_database(self.server))
        await self.lifecycles.run()

    async def create(self) -> None:
        match self.lifecycle:
            case "server":
                self.server = self.first = await self.ack(self.lifecycles.put_server())
            case "database":
                self.first = await self.ack(self.lifecycles.put_database(self.server))

    async def update(self) -> None:
        if self.first and self.lifecycle == "server":
            await self.ack(self.lifecycles.update(self.first, password="another"))
        elif self.first:
            await self.ack(self.lifecycles.update(self.first, labels={"a": "b"}))

    async def add_child(self) -> None:
        if self.lifecycle == "server":
            await self.ack(self.lifecycles.put_database(self.server))

    async def delete(self) -> None:
        if self.lifecycle == "resourceGroup":
            self.first = await self.ack(self.lifecycles.delete_group())
        else:
            await self.ack(self.lifecycles.delete(self.first))

    def parts(self) -> tuple:
        return (self.create, self.update, self.add_child, self.delete)

    async def gave_up(self) -> bool:
        return self.first and await self.lifecycles.state(self.first) in {"failed", "delete_failed"}

    async def heal(self) -> None:
        """A customer tries again; a failed deletion does that by itself."""

        async def left() -> bool:
            return not await self.gave_up()

        if await self.lifecycles.state(self.first) == "failed":
            await self.ack(self.lifecycles.update(self.first))
        await self.lifecycles.run(until=left)

    async def ack(self, asking) -> ResourceHandle:
        handle = await asking
        self.acked.append(handle)
        return handle

    async def statuses(self) -> list[str]:
        return [(await self.lifecycles.operation(handle)).status for handle in self.acked]


HIT: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    declared = sum(len(lot.states) for lot in LOTS)
    print(f"\ncells hit / declared in one process: {len(HIT)} / {declared}")


@pytest.fixture
def lifecycles(db, settings, targets) -> Lifecycles:
    return Lifecycles(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.mark.parametrize("lot", LOTS, ids=str)
async def test_a_fault_leaves_nothing_wrong(
    lot: Lot, lifecycles: Lifecycles, database_url: str
) -> None:
    life = Life(lifecycles, lot.lifecycle)
    await life.prepare()

    async with no_idle_transaction(database_url):
        if lot.fault == "raises until it gives up":
            await _gives_up(lot, life)
        else:
            await _goes_on(lot, life)

    assert await violations(lifecycles.db, [handle.operation_id for handle in life.acked]) == []
    assert await lifecycles.resource(life.first) is None
    if lot.lifecycle != "database":
        assert lifecycles.clusters.known() == []
    HIT.update(lot.points(lot.fault))
    left = await lifecycles.databases()
    assert not [handle.id.name for handle in life.acked if handle.id.name in left]


async def _goes_on(lot: Lot, life: Life) -> None:
    """A fault that passes costs nobody's operation."""
    with arming.armed(lot, life.lifecycles) as hits:
        for part in life.parts():
            await part()
            await arming.run(life.lifecycles)
        assert hits() == set(lot.states)
    assert set(await life.statuses()) == {"Succeeded"}


async def _gives_up(lot: Lot, life: Life) -> None:
    """A fault that stays ends in the or-else of its row; when it is healed the life goes on."""
    lifecycles = life.lifecycles
    with failpoints.armed(dict.fromkeys(lot.points("fsm.effect"), "raise")) as armed:
        for part in life.parts():
            await part()
            while True:
                await lifecycles.run(until=life.gave_up)
                failing = [point for point in armed.actions if armed.hits.get(point)]
                if not failing:
                    break
                assert (await life.statuses())[-1] == "Failed"
                for point in failing:
                    del armed.actions[point]
                await life.heal()
        assert armed.actions == {}
    assert set(await life.statuses()) == {"Succeeded", "Failed"}


def test_every_cell_is_declared():
    cells = {(lot.lifecycle, state, lot.fault) for lot in LOTS for state in lot.states}
    assert len(cells) == sum(map(len, STATES.values())) * len(FAULTS)
