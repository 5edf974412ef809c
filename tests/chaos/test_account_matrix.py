"""Every step of a job account × every fault: real metadata and workload queue, a fake node agent."""

import contextlib
import os
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from fsm.account import ACCOUNT, S
from fsm.launch.queue import Queue
from fsm.launch.workload import seal_context
from fsm.lifecycle_table import Step
from muster.core import failpoints
from muster.core.settings import Secret
from nodeagent.protocol import ReadEpoch
from tests.chaos import arming
from tests.chaos.cells import FAULTS, Lot
from tests.support.account_fixture import AccountWorld
from tests.support.fake_clusters import FakeClusters
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.lifecycle_fixture import Asked, unhurried

STATES = tuple(str(row.state) for row in ACCOUNT.rows.values() if isinstance(row, Step))
STAYS = "raises until it gives up"
PASSING = [fault for fault in FAULTS if fault != STAYS]
ALONE = [Lot("account", (state,), fault) for fault in PASSING for state in STATES]
TOGETHER = [Lot("account", STATES, fault) for fault in PASSING]
# MUSTER_TEST_CELLS=all (`make chaos`): a life for each cell, so that faults can't hide one another.
LOTS = ALONE if os.environ.get("MUSTER_TEST_CELLS") == "all" else TOGETHER
CREATING = (S.RESERVING, S.PREPARING_DATABASE, S.QUEUING_INSTANCE, S.STARTING_INSTANCE)
# Where a step that fails for good leads; what is not named here continues by itself.
ENDS = {
    **dict.fromkeys(CREATING, (S.FAILED, "Failed")),
    S.UPDATING: (S.READY, "Failed"),
    S.RECOVERING: (S.DISABLED, None),
    S.STOPPING_INSTANCE: (S.DELETE_FAILED, "Failed"),
    S.RELEASING: (S.DELETE_FAILED, "Failed"),
}

HIT: set[str] = set()


class Life:
    """Made, resized, its engine killed, deleted: every working state is passed."""

    def __init__(self, world: AccountWorld) -> None:
        self.world = world
        self.account: Asked
        self.acked: list[Asked] = []

    async def create(self) -> None:
        self.account = await self._ack(self.world.put_account())

    async def update(self) -> None:
        await self._ack(self.world.resize(self.account, "JA200"))

    async def crash(self) -> None:
        await self.world.launcher.kill()

    async def delete(self) -> None:
        await self._ack(self.world.delete(self.account, dropSchema=True))

    def parts(self) -> tuple[Any, ...]:
        return (self.create, self.update, self.crash, self.delete)

    async def statuses(self) -> list[str]:
        return [(await self.world.operation(asked)).status for asked in self.acked]

    async def check(self) -> None:
        """One engine while it lives, none afterwards; never an epoch twice."""
        world = self.world
        uid = self.account.uid
        await world.launcher.turn()
        epochs = world.launcher.started
        assert epochs == sorted(set(epochs))
        if await world.resource(self.account) is None:
            assert world.launcher.alive == {}
            assert await world.workloads(self.account) == []
            assert world.agent.roles == set()
            return
        assert await world.state(self.account) == S.READY
        assert [each.epoch for each in world.launcher.engines()] == [epochs[-1]]
        control = world.agent.of(uid)
        assert control.epochs == sorted(set(control.epochs))
        assert control.instance.epoch == epochs[-1]
        assert await world.conditions(self.account) == []

    async def check_end(self) -> None:
        acked = [asked.operation_id for asked in self.acked]
        assert await violations(self.world.db, acked) == []
        assert await self.world.resource(self.account) is None

    async def _ack(self, asking: Any) -> Asked:
        asked = await asking
        self.acked.append(asked)
        return asked


@pytest.fixture(scope="module", autouse=True)
def count():
    yield
    declared = len(STATES) * len(FAULTS)
    print(f"\naccount cells hit / declared in one process: {len(HIT)} / {declared}")


@pytest.fixture
def world(db, settings, targets) -> AccountWorld:
    return AccountWorld(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.mark.parametrize("lot", LOTS, ids=str)
async def test_a_fault_that_passes_costs_nobodys_operation(
    lot: Lot, world: AccountWorld, database_url: str
) -> None:
    life = Life(world)

    async with no_idle_transaction(database_url):
        with arming.armed(lot, world) as hits:
            for part in life.parts():
                await part()
                await arming.run(world)
                await life.check()
            assert hits() == set(lot.states)

    assert set(await life.statuses()) == {"Succeeded"}
    await life.check_end()
    HIT.update(lot.points(lot.fault))


@pytest.mark.parametrize("state", STATES)
async def test_a_fault_that_stays_ends_in_the_or_else_of_its_row(
    state: str, world: AccountWorld, database_url: str
) -> None:
    life, lot = Life(world), Lot("account", (state,), STAYS)

    async with no_idle_transaction(database_url):
        await _gives_up(lot, life)

    await life.check_end()
    HIT.update(lot.points(STAYS))


async def _gives_up(cell: Lot, life: Life) -> None:
    """When it is healed the life goes on."""
    world, point = life.world, cell.points("fsm.effect")[0]
    expected = ENDS.get(S(cell.state))

    async def given_up() -> bool:
        return expected is not None and await world.state(life.account) == expected[0]

    with failpoints.armed({point: "raise"}) as armed:
        for part in life.parts():
            before = armed.hits.get(point, 0)
            await part()
            await world.run(until=given_up if armed.actions and cell.state != S.UPDATING else None)
            if armed.hits.get(point, 0) > before and expected is not None:
                await _gave_up(life, *expected)
                armed.actions.clear()
                await _heal(life)
            await life.check()
        assert armed.hits[point]


async def _gave_up(life: Life, state: str, status: str | None) -> None:
    world = life.world
    assert await world.state(life.account) == state
    if status:
        assert (await life.statuses())[-1] == status
    if state == S.DISABLED:
        assert await world.conditions(life.account) == ["FailpointRaised"]
    if state == S.FAILED:
        await world.watch.once()
        await world.launcher.turn()
        assert world.launcher.alive == {}


async def _heal(life: Life) -> None:
    """A customer tries again; what is disabled, or could not be deleted, does that by itself."""
    if await life.world.state(life.account) == S.FAILED:
        await life._ack(life.world.resize(life.account, "JA100"))
    await life.world.run()


# What the watch sees


@pytest.fixture
async def account(world: AccountWorld) -> Asked:
    account = await world.put_account()
    await world.run()
    assert await world.state(account) == S.READY
    return account


async def test_a_restored_control_database_gets_no_engine_until_it_is_acknowledged(world, account):
    await world.launcher.kill()
    await world.run()
    world.agent.of(account.uid).instance.epoch = 1

    await world.watch.once()
    await world.run(until=_tried_again(world, account))

    assert await world.conditions(account) == ["ControlDatabaseRestored"]
    assert world.launcher.engines() == []
    await world.acknowledge(account)
    await world.run()
    assert await world.state(account) == S.READY
    assert world.launcher.started == [1, 2, 3]
    assert await world.conditions(account) == []


@pytest.mark.parametrize("differs", ["identity", "oid"])
async def test_a_copy_gets_no_engine_until_it_is_acknowledged(world, account, differs):
    control = world.agent.of(account.uid)
    if differs == "identity":
        control.instance.identity = uuid4()
    else:
        control.oid += 1

    await world.watch.once()
    await world.run(until=_tried_again(world, account))

    assert await world.conditions(account) == ["ControlDatabaseCloned"]
    assert world.launcher.engines() == []
    await world.acknowledge(account)
    await world.run()
    assert await world.state(account) == S.READY
    await world.watch.once()
    assert await world.state(account) == S.READY
    assert world.launcher.started == [1, 2]


async def test_an_update_does_not_start_an_engine_in_a_copy(world, account):
    world.agent.of(account.uid).oid += 1

    updated = await world.resize(account, "JA200")
    await world.run()

    assert (await world.operation(updated)).error["code"] == "ControlDatabaseCloned"
    await world.launcher.turn()
    assert world.launcher.engines() == []


async def test_a_dropped_control_database_disables_and_its_return_heals(world, account):
    kept = dict(world.agent.databases)
    world.agent.databases.clear()

    await world.watch.once()
    await world.run(until=_tried_again(world, account))

    assert await world.conditions(account) == ["TargetDatabaseNotFound"]
    since = (await world.resource(account))["observed"]["conditions"][0]["since"]
    assert since.endswith("Z")
    world.agent.databases.update(kept)
    await world.run()
    assert await world.state(account) == S.READY
    assert await world.conditions(account) == []


async def test_without_a_node_agent_nothing_is_concluded(world, account):
    world.agent.away = True

    for _ in range(3):
        await world.watch.once()
        await world.advance(world.settings.workload_silent)

    assert await world.state(account) == S.READY
    assert len(world.launcher.engines()) == 1


async def test_the_directory_follows_what_becomes_of_servers(world, account):
    control = world.agent.of(account.uid).instance
    await world.watch.once()
    before = control.revision
    await world.watch.once()
    assert control.revision == before  # nothing has changed: nothing is sent

    await world.db.execute(
        'update resource set properties = properties || \'{"labels": {"tier": "gold"}}\''
        " where type = 'Microsoft.Sql/servers'"
    )
    await world.watch.once()

    assert [server.labels for server in control.directory] == [{"tier": "gold"}]


async def test_the_watch_sends_a_signal_once(world, account):
    world.agent.databases.clear()

    for _ in range(3):
        await world.watch.once()

    assert await world.db.fetchval("select count(*) from signal") == 1


async def test_an_engine_whose_end_nobody_heard_is_missed_by_the_watch(world, account):
    await world.launcher.kill(heard_by=Queue(world.settings))

    await world.watch.once()
    await world.run()

    assert await world.path(account) == [*CREATING, S.READY, S.RECOVERING, S.READY]
    assert [each.epoch for each in world.launcher.engines()] == [2]


async def test_an_engine_of_an_update_that_was_given_up_is_replaced(world, account):
    with failpoints.armed({"fsm.after_effect@account.updating": "raise"}):
        with contextlib.suppress(failpoints.FailpointError):
            await world.resize(account, "JA200")
            await world.run()
    await world.advance(timedelta(minutes=11))
    await world.run()
    assert (await world.resource(account))["sku"]["name"] == "JA100"

    await world.watch.once()
    await world.run()

    engine = next(each for each in world.launcher.engines())
    assert engine.spec.settings["capacity"] == 100
    assert await world.state(account) == S.READY


async def test_an_engine_gets_the_vault_and_its_token_as_a_secret(world):
    token = Secret("hvs.canary")
    world.settings = replace(world.settings, vault_address="https://v.test", vault_token=token)

    await world.put_account()
    await world.run()

    (engine,) = world.launcher.engines()
    assert engine.spec.settings["vaultAddress"] == "https://v.test"
    assert "canary" not in str(engine.spec.settings)
    sealed, context = engine.sealed["vault_token"], seal_context(engine.id, "vault_token")
    assert world.services.keyring.open(sealed, context) == token


async def test_an_engine_that_never_starts_fails_the_creation_and_leaves_nothing(world):
    world.launcher.broken = True

    account = await world.put_account()
    await world.run()

    assert await world.state(account) == S.FAILED
    assert (await world.operation(account)).error["code"] == "EngineStartFailed"
    await world.watch.once()
    await world.launcher.turn()
    assert world.launcher.alive == {}
    assert all(each.state.over for each in await world.workloads(account))


async def test_an_account_on_a_server_without_an_administrator_fails_and_can_be_deleted(world):
    account = await world.put_account(administratorLogin=None)
    await world.run()
    assert (await world.operation(account)).error["code"] == "ServerHasNoAdministrator"

    deleted = await world.delete(account)
    await world.run()

    assert (await world.operation(deleted)).status == "Succeeded"


async def test_a_runner_that_slept_wants_no_engine_for_a_deleted_account(world):
    minute = timedelta(minutes=1)
    world.settings = replace(world.settings, lease=minute, step_limit=minute / 2)
    account = await world.put_account()
    answer, slept = world.agent.run, []

    async def answer_and_sleep(uid, id, command, login):
        """Between what it read and what it wants, all the rest of a life goes by."""
        answered = await answer(uid, id, command, login)
        if isinstance(command, ReadEpoch) and not slept:
            slept.append(await world.state(account))
            await world.advance(world.settings.lease)
            await world.delete(account)
            await world.run()
            assert await world.workloads(account) == []
        return answered

    world.agent.run = answer_and_sleep
    await world.run()

    assert slept == [S.QUEUING_INSTANCE]
    assert await world.resource(account) is None
    assert await world.workloads(account) == []


def _tried_again(world: AccountWorld, account: Asked):
    """Disabled, and once more after it had tried by itself."""

    async def true() -> bool:
        return (await world.path(account)).count(S.DISABLED) >= 2

    return true
