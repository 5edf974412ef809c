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
from tests.support.account_fixture import AccountLifecycles
from tests.support.fake_clusters import FakeClusters
from tests.support.idle_transactions import no_idle_transaction
from tests.support.invariants import violations
from tests.support.lifecycle_fixture import ResourceHandle, unhurried

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

    def __init__(self, lifecycles: AccountLifecycles) -> None:
        self.lifecycles = lifecycles
        self.account: ResourceHandle
        self.acked: list[ResourceHandle] = []

    async def create(self) -> None:
        self.account = await self._ack(self.lifecycles.put_account())

    async def update(self) -> None:
        await self._ack(self.lifecycles.resize(self.account, "JA200"))

    async def crash(self) -> None:
        await self.lifecycles.launcher.kill()

    async def delete(self) -> None:
        await self._ack(self.lifecycles.delete(self.account, dropSchema=True))

    def parts(self) -> tuple[Any, ...]:
        return (self.create, self.update, self.crash, self.delete)

    async def statuses(self) -> list[str]:
        return [(await self.lifecycles.operation(handle)).status for handle in self.acked]

    async def check(self) -> None:
        """One engine while it lives, none afterwards; never an epoch twice."""
        lifecycles = self.lifecycles
        uid = self.account.uid
        await lifecycles.launcher.turn()
        epochs = lifecycles.launcher.started
        assert epochs == sorted(set(epochs))
        if await lifecycles.resource(self.account) is None:
            assert lifecycles.launcher.alive == {}
            assert await lifecycles.workloads(self.account) == []
            assert lifecycles.agent.roles == set()
            return
        assert await lifecycles.state(self.account) == S.READY
        assert [each.epoch for each in lifecycles.launcher.engines()] == [epochs[-1]]
        control = lifecycles.agent.of(uid)
        assert control.epochs == sorted(set(control.epochs))
        assert control.instance.epoch == epochs[-1]
        assert await lifecycles.conditions(self.account) == []

    async def check_end(self) -> None:
        acked = [handle.operation_id for handle in self.acked]
        assert await violations(self.lifecycles.db, acked) == []
        assert await self.lifecycles.resource(self.account) is None

    async def _ack(self, asking: Any) -> ResourceHandle:
        handle = await asking
        self.acked.append(handle)
        return handle


@pytest.fixture(scope="module", autouse=True)
def print_coverage():
    yield
    declared = len(STATES) * len(FAULTS)
    print(f"\naccount cells hit / declared in one process: {len(HIT)} / {declared}")


@pytest.fixture
def lifecycles(db, settings, targets) -> AccountLifecycles:
    return AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.mark.parametrize("lot", LOTS, ids=str)
async def test_a_fault_that_passes_costs_nobodys_operation(
    lot: Lot, lifecycles: AccountLifecycles, database_url: str
) -> None:
    life = Life(lifecycles)

    async with no_idle_transaction(database_url):
        with arming.armed(lot, lifecycles) as hits:
            for part in life.parts():
                await part()
                await arming.run(lifecycles)
                await life.check()
            assert hits() == set(lot.states)

    assert set(await life.statuses()) == {"Succeeded"}
    await life.check_end()
    HIT.update(lot.points(lot.fault))


@pytest.mark.parametrize("state", STATES)
async def test_a_fault_that_stays_ends_in_the_or_else_of_its_row(
    state: str, lifecycles: AccountLifecycles, database_url: str
) -> None:
    life, lot = Life(lifecycles), Lot("account", (state,), STAYS)

    async with no_idle_transaction(database_url):
        await _gives_up(lot, life)

    await life.check_end()
    HIT.update(lot.points(STAYS))


async def _gives_up(cell: Lot, life: Life) -> None:
    """When it is healed the life goes on."""
    lifecycles, point = life.lifecycles, cell.points("fsm.effect")[0]
    expected = ENDS.get(S(cell.state))

    async def given_up() -> bool:
        return expected is not None and await lifecycles.state(life.account) == expected[0]

    with failpoints.armed({point: "raise"}) as armed:
        for part in life.parts():
            before = armed.hits.get(point, 0)
            await part()
            await lifecycles.run(
                until=given_up if armed.actions and cell.state != S.UPDATING else None
            )
            if armed.hits.get(point, 0) > before and expected is not None:
                await _gave_up(life, *expected)
                armed.actions.clear()
                await _heal(life)
            await life.check()
        assert armed.hits[point]


async def _gave_up(life: Life, state: str, status: str | None) -> None:
    lifecycles = life.lifecycles
    assert await lifecycles.state(life.account) == state
    if status:
        assert (await life.statuses())[-1] == status
    if state == S.DISABLED:
        assert await lifecycles.conditions(life.account) == ["FailpointRaised"]
    if state == S.FAILED:
        await lifecycles.watch.once()
        await lifecycles.launcher.turn()
        assert lifecycles.launcher.alive == {}


async def _heal(life: Life) -> None:
    """A customer tries again; what is disabled, or could not be deleted, does that by itself."""
    if await life.lifecycles.state(life.account) == S.FAILED:
        await life._ack(life.lifecycles.resize(life.account, "JA100"))
    await life.lifecycles.run()


# What the watch sees


@pytest.fixture
async def account(lifecycles: AccountLifecycles) -> ResourceHandle:
    account = await lifecycles.put_account()
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    return account


async def test_a_restored_control_database_gets_no_engine_until_it_is_acknowledged(
    lifecycles, account
):
    await lifecycles.launcher.kill()
    await lifecycles.run()
    lifecycles.agent.of(account.uid).instance.epoch = 1

    await lifecycles.watch.once()
    await lifecycles.run(until=_tried_again(lifecycles, account))

    assert await lifecycles.conditions(account) == ["ControlDatabaseRestored"]
    assert lifecycles.launcher.engines() == []
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    assert lifecycles.launcher.started == [1, 2, 3]
    assert await lifecycles.conditions(account) == []


@pytest.mark.parametrize("differs", ["identity", "oid"])
async def test_a_copy_gets_no_engine_until_it_is_acknowledged(lifecycles, account, differs):
    control = lifecycles.agent.of(account.uid)
    if differs == "identity":
        control.instance.identity = uuid4()
    else:
        control.oid += 1

    await lifecycles.watch.once()
    await lifecycles.run(until=_tried_again(lifecycles, account))

    assert await lifecycles.conditions(account) == ["ControlDatabaseCloned"]
    assert lifecycles.launcher.engines() == []
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    await lifecycles.watch.once()
    assert await lifecycles.state(account) == S.READY
    assert lifecycles.launcher.started == [1, 2]


async def test_an_update_does_not_start_an_engine_in_a_copy(lifecycles, account):
    lifecycles.agent.of(account.uid).oid += 1

    updated = await lifecycles.resize(account, "JA200")
    await lifecycles.run()

    assert (await lifecycles.operation(updated)).error["code"] == "ControlDatabaseCloned"
    await lifecycles.launcher.turn()
    assert lifecycles.launcher.engines() == []


async def test_a_dropped_control_database_disables_and_its_return_heals(lifecycles, account):
    kept = dict(lifecycles.agent.databases)
    lifecycles.agent.databases.clear()

    await lifecycles.watch.once()
    await lifecycles.run(until=_tried_again(lifecycles, account))

    assert await lifecycles.conditions(account) == ["TargetDatabaseNotFound"]
    since = (await lifecycles.resource(account))["observed"]["conditions"][0]["since"]
    assert since.endswith("Z")
    lifecycles.agent.databases.update(kept)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    assert await lifecycles.conditions(account) == []


async def test_without_a_node_agent_nothing_is_concluded(lifecycles, account):
    lifecycles.agent.away = True

    for _ in range(3):
        await lifecycles.watch.once()
        await lifecycles.advance(lifecycles.settings.workload_silent)

    assert await lifecycles.state(account) == S.READY
    assert len(lifecycles.launcher.engines()) == 1


async def test_the_directory_follows_what_becomes_of_servers(lifecycles, account):
    control = lifecycles.agent.of(account.uid).instance
    await lifecycles.watch.once()
    before = control.revision
    await lifecycles.watch.once()
    assert control.revision == before  # nothing has changed: nothing is sent

    await lifecycles.db.execute(
        'update resource set properties = properties || \'{"labels": {"tier": "gold"}}\''
        " where type = 'Microsoft.Sql/servers'"
    )
    await lifecycles.watch.once()

    assert [server.labels for server in control.directory] == [{"tier": "gold"}]


async def test_the_watch_sends_a_signal_once(lifecycles, account):
    lifecycles.agent.databases.clear()

    for _ in range(3):
        await lifecycles.watch.once()

    assert await lifecycles.db.fetchval("select count(*) from signal") == 1


async def test_an_engine_whose_end_nobody_heard_is_missed_by_the_watch(lifecycles, account):
    await lifecycles.launcher.kill(heard_by=Queue(lifecycles.settings))

    await lifecycles.watch.once()
    await lifecycles.run()

    assert await lifecycles.path(account) == [*CREATING, S.READY, S.RECOVERING, S.READY]
    assert [each.epoch for each in lifecycles.launcher.engines()] == [2]


async def test_an_engine_of_an_update_that_was_given_up_is_replaced(lifecycles, account):
    with failpoints.armed({"fsm.after_effect@account.updating": "raise"}):
        with contextlib.suppress(failpoints.FailpointError):
            await lifecycles.resize(account, "JA200")
            await lifecycles.run()
    await lifecycles.advance(timedelta(minutes=11))
    await lifecycles.run()
    assert (await lifecycles.resource(account))["sku"]["name"] == "JA100"

    await lifecycles.watch.once()
    await lifecycles.run()

    engine = next(each for each in lifecycles.launcher.engines())
    assert engine.spec.settings["capacity"] == 100
    assert await lifecycles.state(account) == S.READY


async def test_an_engine_gets_the_vault_and_its_token_as_a_secret(lifecycles):
    token = Secret("hvs.canary")
    lifecycles.settings = replace(
        lifecycles.settings, vault_address="https://v.test", vault_token=token
    )

    await lifecycles.put_account()
    await lifecycles.run()

    (engine,) = lifecycles.launcher.engines()
    assert engine.spec.settings["vaultAddress"] == "https://v.test"
    assert "canary" not in str(engine.spec.settings)
    sealed, context = engine.sealed["vault_token"], seal_context(engine.id, "vault_token")
    assert lifecycles.services.keyring.open(sealed, context) == token


async def test_an_engine_that_never_starts_fails_the_creation_and_leaves_nothing(lifecycles):
    lifecycles.launcher.broken = True

    account = await lifecycles.put_account()
    await lifecycles.run()

    assert await lifecycles.state(account) == S.FAILED
    assert (await lifecycles.operation(account)).error["code"] == "EngineStartFailed"
    await lifecycles.watch.once()
    await lifecycles.launcher.turn()
    assert lifecycles.launcher.alive == {}
    assert all(each.state.over for each in await lifecycles.workloads(account))


async def test_an_account_on_a_server_without_an_administrator_fails_and_can_be_deleted(lifecycles):
    account = await lifecycles.put_account(administratorLogin=None)
    await lifecycles.run()
    assert (await lifecycles.operation(account)).error["code"] == "ServerHasNoAdministrator"

    deleted = await lifecycles.delete(account)
    await lifecycles.run()

    assert (await lifecycles.operation(deleted)).status == "Succeeded"


async def test_a_runner_that_slept_wants_no_engine_for_a_deleted_account(lifecycles):
    minute = timedelta(minutes=1)
    lifecycles.settings = replace(lifecycles.settings, lease=minute, step_limit=minute / 2)
    account = await lifecycles.put_account()
    answer, slept = lifecycles.agent.run, []

    async def answer_and_sleep(uid, id, command, login):
        """Between what it read and what it wants, all the rest of a life goes by."""
        answered = await answer(uid, id, command, login)
        if isinstance(command, ReadEpoch) and not slept:
            slept.append(await lifecycles.state(account))
            await lifecycles.advance(lifecycles.settings.lease)
            await lifecycles.delete(account)
            await lifecycles.run()
            assert await lifecycles.workloads(account) == []
        return answered

    lifecycles.agent.run = answer_and_sleep
    await lifecycles.run()

    assert slept == [S.QUEUING_INSTANCE]
    assert await lifecycles.resource(account) is None
    assert await lifecycles.workloads(account) == []


def _tried_again(lifecycles: AccountLifecycles, account: ResourceHandle):
    """Disabled, and once more after it had tried by itself."""

    async def true() -> bool:
        return (await lifecycles.path(account)).count(S.DISABLED) >= 2

    return true
