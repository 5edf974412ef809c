"""Job accounts whose versions do not fit, whose hosts are sent off, who are acknowledged or mended."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from fsm.account import S
from fsm.launch.protocol import Kind, Reason
from fsm.launch.queue import Queue
from muster.core.db import Database
from tests.support.account_fixture import AccountWorld, FakeLauncher
from tests.support.fake_clusters import FakeClusters
from tests.support.plane import a_call, make_plane
from tests.support.lifecycle_fixture import Asked, unhurried
from workflows import account_actions, accounts
from workflows.model.resource import Principal

pytestmark = pytest.mark.newest

SOMEBODY = Principal(id="me", tenant_id="t", owner=True)
CLONED, RESTORED = "ControlDatabaseCloned", "ControlDatabaseRestored"


@pytest.fixture
def world(db, settings, targets) -> AccountWorld:
    return AccountWorld(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.fixture
async def account(world) -> Asked:
    account = await world.put_account()
    await world.run()
    assert await world.state(account) == S.READY
    return account


def disabled(world: AccountWorld, account: Asked, times: int = 1):
    """So often, since it was asked."""

    async def true() -> bool:
        return (await world.path(account)).count(S.DISABLED) >= times

    return true


def in_state(world: AccountWorld, account: Asked, state: S):
    async def true() -> bool:
        return await world.state(account) == state

    return true


async def again(world: AccountWorld, account: Asked, rounds: int = 3) -> None:
    """It looks by itself so many times more."""
    before = (await world.path(account)).count(S.DISABLED)
    await world.run(until=disabled(world, account, before + rounds))


async def doctor(world: AccountWorld, account: Asked) -> list[str]:
    plane = make_plane(world.settings, world.db)
    told = await account_actions.doctor(plane, a_call("POST", SOMEBODY), account.id)
    return told["advice"]


async def message(world: AccountWorld, account: Asked) -> str:
    return (await world.resource(account))["observed"]["conditions"][0]["message"]


# Versions that do not fit


async def outgrown(world: AccountWorld, account: Asked) -> None:
    """The schema has become too new, and the engine ends."""
    world.launcher.fits = {"2.0.0"}
    await world.launcher.kill()
    await world.run(until=disabled(world, account))


async def test_an_engine_that_does_not_fit_is_started_once_and_told_with_both_versions(
    world, account
):
    await outgrown(world, account)

    await again(world, account, rounds=5)

    assert world.launcher.started == [1, 2]
    assert await world.conditions(account) == ["EngineIncompatible"]
    assert "engine 1.0.0" in await message(world, account)
    assert "needs 2.0.0" in await message(world, account)
    assert any("upgrade Muster there" in each for each in await doctor(world, account))
    assert not any("can't be reached" in each for each in await doctor(world, account))


async def test_one_that_ends_so_while_the_account_is_ready_is_not_replaced(world, account):
    engine = world.launcher.engines()[0]
    said = "Incompatible: engine 1.0.0 is too old for this schema, which needs 2.0.0."

    async with world.db.transaction() as tx:
        await world.queue.failure(
            tx, engine.id, reason=Reason.REPORTED, source="workload", message=said
        )
    await world.run(until=disabled(world, account))
    await again(world, account)

    assert world.launcher.started == [1]
    path = await world.path(account)
    assert path[path.index(S.READY) + 1] == S.DISABLED
    assert await world.conditions(account) == ["EngineIncompatible"]


async def test_it_heals_when_a_launcher_of_another_version_is_there(world, account):
    await outgrown(world, account)

    world.launcher.version = "2.0.0"
    await world.launcher.turn()
    await world.run()

    assert await world.state(account) == S.READY
    assert await world.conditions(account) == []
    assert world.launcher.started == [1, 2, 3]


async def test_it_heals_when_an_update_has_upgraded_the_schema(world, account):
    await outgrown(world, account)

    world.launcher.fits = {"1.0.0"}  # what the upgrade leads to
    updated = await world.resize(account, "JA200")
    await world.run()

    assert (await world.operation(updated)).status == "Succeeded"
    assert await world.state(account) == S.READY


async def test_an_update_that_does_not_help_starts_one_engine_and_leaves_it_disabled(
    world, account
):
    await outgrown(world, account)

    updated = await world.resize(account, "JA200")
    await world.run(until=disabled(world, account, times=2))

    assert (await world.operation(updated)).error["code"] == "EngineIncompatible"
    assert await world.conditions(account) == ["EngineIncompatible"]
    assert world.launcher.started == [1, 2, 3]


async def test_a_creation_whose_engine_does_not_fit_fails_at_its_first_engine(world):
    world.launcher.fits = {"2.0.0"}

    account = await world.put_account()
    await world.run()

    assert (await world.operation(account)).error["code"] == "EngineIncompatible"
    assert world.launcher.started == [1]


# Launchers without room, and none at all


async def test_waiting_for_a_launcher_has_no_limit_while_one_lives(world):
    world.launcher.full = True
    account = await world.put_account()
    await world.run(until=in_state(world, account, S.STARTING_INSTANCE))

    for _ in range(10):  # 40 minutes; the state itself has 10
        await world.step(account)
        await world.advance(timedelta(minutes=4))
    assert await world.state(account) == S.STARTING_INSTANCE

    world.launcher.full = False
    await world.run()
    assert await world.state(account) == S.READY


async def test_the_time_of_the_start_counts_once_a_launcher_has_taken_it(world, monkeypatch):
    account = await world.put_account()
    await world.run(until=in_state(world, account, S.STARTING_INSTANCE))
    monkeypatch.setattr(FakeLauncher, "_comes_up", lambda *_: True)  # and no heartbeat is seen
    await world.launcher.turn()

    for _ in range(3):
        await world.advance(timedelta(minutes=4))
        await world.step(account)

    assert await world.state(account) == S.FAILED


async def test_without_a_launcher_the_account_fails_and_says_what_is_missing(world):
    world.launcher.full = True
    account = await world.put_account()
    await world.run(until=in_state(world, account, S.STARTING_INSTANCE))
    (engine,) = (each for each in await world.workloads(account) if each.kind is Kind.ENGINE)
    async with world.db.transaction() as tx:
        await world.queue.failure(
            tx, engine.id, reason=Reason.NOT_CLAIMED, source="monitor", message="no launcher"
        )

    await world.run()

    error = (await world.operation(account)).error
    assert error["code"] == "LauncherUnavailable" and "muster launcher" in error["message"]
    assert await world.state(account) == S.FAILED


# What is shown


async def test_the_last_heartbeat_is_the_one_that_was_heard_last(world, account, monkeypatch):
    plane, call = make_plane(world.settings, world.db), a_call("GET", SOMEBODY)
    before = await accounts.get(plane, call, account.id)
    engine = world.launcher.engines()[0]
    world.agent.away = True  # nobody asks the control database

    heard = (await world.queue.heartbeat(world.db, engine.id)).heartbeat_at

    queries = []
    for name in ("fetch", "fetchrow", "fetchval"):
        asked = getattr(Database, name)
        monkeypatch.setattr(
            Database, name, lambda db, q, *a, asked=asked: queries.append(q) or asked(db, q, *a)
        )
    shown = await accounts.get(plane, call, account.id)
    assert len(queries) == 1
    listed = await accounts.list_page(plane, call, account.id.parent, None, 10)
    assert len(queries) == 2
    assert shown == listed.items[0]
    assert datetime.fromisoformat(shown.observed["instance"]["lastHeartbeat"]) == heard
    assert shown.observed["instance"] != before.observed["instance"]
    assert shown.etag == before.etag


async def test_a_newer_engine_does_not_lend_its_heartbeat_to_the_one_that_is_shown(world, account):
    plane, call = make_plane(world.settings, world.db), a_call("GET", SOMEBODY)
    engine = world.launcher.engines()[0]
    heard = (await world.queue.heartbeat(world.db, engine.id)).heartbeat_at
    await world.resize(account, "JA200")
    await world.run(until=lambda: _started(world, 2))

    shown = (await accounts.get(plane, call, account.id)).observed["instance"]

    assert shown["epoch"] == 1
    assert datetime.fromisoformat(shown["lastHeartbeat"]) == heard


async def _started(world: AccountWorld, epoch: int) -> bool:
    return epoch in world.launcher.started


# Hosts


async def test_hosts_that_end_while_a_new_engine_comes_up_are_missed_by_the_watch(world, account):
    hosts = [each for each in world.launcher.alive.values() if each.kind is Kind.HOST]
    for host in hosts:
        await world.launcher._gone(host.id, 0, Queue(world.settings))  # nobody hears of it

    await world.watch.once()
    await world.run()

    assert await world.state(account) == S.READY
    alive = [each for each in world.launcher.alive.values() if each.kind is Kind.HOST]
    assert len(alive) == len(hosts) == world.settings.engine_hosts
    assert not {each.id for each in alive} & {each.id for each in hosts}


# Acknowledgement


async def strange(world: AccountWorld, account: Asked, what: str) -> None:
    """The control database becomes a copy, or goes back, and the watch sees it."""
    control = world.agent.of(account.uid)
    if what == CLONED:
        control.instance.identity = uuid4()
    else:
        control.instance.epoch = 0
    await world.watch.once()


@pytest.mark.parametrize(("first", "later"), [(CLONED, RESTORED), (RESTORED, CLONED)])
async def test_what_was_acknowledged_says_nothing_about_what_comes_later(
    world, account, first, later
):
    await strange(world, account, first)
    await world.run(until=disabled(world, account))
    await world.acknowledge(account)
    world.launcher.broken = True  # accepted, and no engine comes up
    await world.run(until=disabled(world, account, times=2))
    assert await world.conditions(account) == ["EngineStartFailed"]

    world.launcher.broken = False
    started = len(world.launcher.started)
    await strange(world, account, later)
    await again(world, account)

    assert await world.conditions(account) == [later]
    assert len(world.launcher.started) == started
    await world.acknowledge(account)
    await world.run()
    assert await world.state(account) == S.READY


async def test_an_acknowledgement_that_waits_does_not_cover_what_nobody_has_seen(world, account):
    await strange(world, account, CLONED)
    await world.run(until=disabled(world, account))
    await world.acknowledge(account)
    scratch = await world.db.fetchval("select scratch from machine where uid = $1", account.uid)

    found = world.agent.of(account.uid).instance
    found.identity = UUID(scratch["identity"])
    found.epoch = 0  # before it is looked at, it is ours again, but of long ago
    await world.run(until=disabled(world, account, times=2))

    assert await world.conditions(account) == [RESTORED]
    assert world.launcher.started == [1]


async def test_it_holds_over_an_engine_that_does_not_start_at_once(world, account):
    await strange(world, account, CLONED)
    await world.run(until=disabled(world, account))
    world.launcher.broken = True
    await world.acknowledge(account)
    await world.run(until=disabled(world, account, times=2))

    world.launcher.broken = False
    await world.run()

    assert await world.state(account) == S.READY


async def test_a_database_that_came_back_empty_is_set_up_anew_once_that_is_acknowledged(
    world, account
):
    (where,) = world.agent.databases
    world.agent.databases.clear()
    await world.watch.once()
    await world.run(until=disabled(world, account))
    world.agent.create(*where)
    await again(world, account)
    assert await world.conditions(account) == ["ControlSchemaMissing"]

    await world.acknowledge(account)
    await world.run()

    assert await world.state(account) == S.READY
    assert world.agent.of(account.uid).epochs == [2]


async def test_the_action_acknowledges_what_is_shown(world, account):
    await strange(world, account, CLONED)
    await world.run(until=disabled(world, account))
    plane = make_plane(world.settings, world.db)

    await account_actions.acknowledge(plane, a_call("POST", SOMEBODY), account.id)

    payload = await world.db.fetchval("select payload from signal where name = 'acknowledge'")
    assert payload == {"acknowledged": [CLONED]}
    await world.run()
    assert await world.state(account) == S.READY


# Updates of an account that is disabled


async def test_an_update_of_a_disabled_account_that_fails_leaves_it_disabled_with_its_condition(
    world, account
):
    await strange(world, account, CLONED)
    await world.run(until=disabled(world, account))
    since = (await world.resource(account))["observed"]["conditions"]

    updated = await world.resize(account, "JA200")
    assert (await world.resource(account))["provisioning_state"] == "Updating"
    await world.run(until=disabled(world, account, times=2))

    row = await world.resource(account)
    assert (row["observed"]["state"], row["provisioning_state"]) == ("Disabled", "Succeeded")
    assert row["observed"]["conditions"] == since
    assert row["sku"]["name"] == "JA100"
    assert (await world.operation(updated)).error["code"] == CLONED
    await world.acknowledge(account)
    await world.run()
    assert await world.state(account) == S.READY


async def test_an_update_after_the_cause_is_gone_brings_it_back(world, account):
    kept = dict(world.agent.databases)
    world.agent.databases.clear()
    await world.watch.once()
    await world.run(until=disabled(world, account))

    world.agent.databases.update(kept)
    updated = await world.resize(account, "JA200")
    await world.run()

    assert (await world.operation(updated)).status == "Succeeded"
    assert await world.state(account) == S.READY
    assert await world.conditions(account) == []
    assert (await world.resource(account))["sku"]["name"] == "JA200"


async def test_an_update_that_fails_after_that_is_one_of_a_ready_account(world, account):
    await strange(world, account, CLONED)
    await world.run(until=disabled(world, account))
    await world.acknowledge(account)
    await world.run()
    world.launcher.broken = True

    updated = await world.resize(account, "JA200")
    await world.run()

    assert (await world.operation(updated)).error["code"] == "EngineStartFailed"
    assert await world.state(account) == S.READY


async def test_an_identity_is_accepted_and_said_to_have_no_effect(world, account):
    before = await world.conditions(account)
    one = {"type": "UserAssigned", "userAssignedIdentities": {"/identities/one": {}}}
    set_identity = "update resource set identity = $2 where uid = $1"

    await world.db.execute(set_identity, account.uid, one)
    await world.resize(account, "JA200")
    await world.run()
    given = await world.conditions(account)
    await world.db.execute(set_identity, account.uid, {"type": "None"})
    await world.resize(account, "JA100")
    await world.run()

    assert (before, given) == ([], ["IdentityHasNoEffect"])
    assert await world.conditions(account) == []
