"""Every step × every fault, inside one process: named failpoints, virtual time, a real database."""

import pytest

from muster.core import failpoints
from tests.chaos import arming
from tests.chaos.cells import FAULTS, LOTS, STATES, Lot
from tests.support.fake_clusters import FakeClusters
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.lifecycle_fixture import Asked, World, unhurried


class Life:
    """What a customer asks for from the first PUT to the last DELETE, and what came of it."""

    def __init__(self, world: World, lifecycle: str) -> None:
        self.world = world
        self.lifecycle = lifecycle
        self.acked: list[Asked] = []
        self.first: Asked | None = None

    async def prepare(self) -> None:
        """What has to be there before the fault is armed."""
        if self.lifecycle != "server":
            self.server = await self.ack(self.world.put_server())
        if self.lifecycle == "resourceGroup":
            await self.ack(self.world.put_database(self.server))
        await self.world.run()

    async def create(self) -> None:
        match self.lifecycle:
            case "server":
                self.server = self.first = await self.ack(self.world.put_server())
            case "database":
                self.first = await self.ack(self.world.put_database(self.server))

    async def update(self) -> None:
        if self.first and self.lifecycle == "server":
            await self.ack(self.world.update(self.first, password="another"))
        elif self.first:
            await self.ack(self.world.update(self.first, labels={"a": "b"}))

    async def add_child(self) -> None:
        if self.lifecycle == "server":
            await self.ack(self.world.put_database(self.server))

    async def delete(self) -> None:
        if self.lifecycle == "resourceGroup":
            self.first = await self.ack(self.world.delete_group())
        else:
            await self.ack(self.world.delete(self.first))

    def parts(self) -> tuple:
        return (self.create, self.update, self.add_child, self.delete)

    async def gave_up(self) -> bool:
        return self.first and await self.world.state(self.first) in {"failed", "delete_failed"}

    async def heal(self) -> None:
        """A customer tries again; a failed deletion does that by itself."""

        async def left() -> bool:
            return not await self.gave_up()

        if await self.world.state(self.first) == "failed":
            await self.ack(self.world.update(self.first))
        await self.world.run(until=left)

    async def ack(self, asking) -> Asked:
        asked = await asking
        self.acked.append(asked)
        return asked

    async def statuses(self) -> list[str]:
        return [(await self.world.operation(asked)).status for asked in self.acked]


HIT: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def count():
    yield
    declared = sum(len(lot.states) for lot in LOTS)
    print(f"\ncells hit / declared in one process: {len(HIT)} / {declared}")


@pytest.fixture
def world(db, settings, targets) -> World:
    return World(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.mark.parametrize("lot", LOTS, ids=str)
async def test_a_fault_leaves_nothing_wrong(lot: Lot, world: World, database_url: str) -> None:
    life = Life(world, lot.lifecycle)
    await life.prepare()

    async with no_idle_transaction(database_url):
        if lot.fault == "raises until it gives up":
            await _gives_up(lot, life)
        else:
            await _goes_on(lot, life)

    assert await violations(world.db, [asked.operation_id for asked in life.acked]) == []
    assert await world.resource(life.first) is None
    if lot.lifecycle != "database":
        assert world.clusters.known() == []
    HIT.update(lot.points(lot.fault))
    left = await world.databases()
    assert not [asked.id.name for asked in life.acked if asked.id.name in left]


async def _goes_on(lot: Lot, life: Life) -> None:
    """A fault that passes costs nobody's operation."""
    with arming.armed(lot, life.world) as hits:
        for part in life.parts():
            await part()
            await arming.run(life.world)
        assert hits() == set(lot.states)
    assert set(await life.statuses()) == {"Succeeded"}


async def _gives_up(lot: Lot, life: Life) -> None:
    """A fault that stays ends in the or-else of its row; when it is healed the life goes on."""
    world = life.world
    with failpoints.armed(dict.fromkeys(lot.points("fsm.effect"), "raise")) as armed:
        for part in life.parts():
            await part()
            while True:
                await world.run(until=life.gave_up)
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
