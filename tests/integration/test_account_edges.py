"""Job accounts whose versions do not fit, whose hosts are sent off, who are acknowledged or mended."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from fsm.account import S
from fsm.launch.protocol import Kind, Reason
from fsm.launch.queue import Queue
from muster.core.db import Database
from tests.support.account_fixture import AccountLifecycles, FakeLauncher
from tests.support.fake_clusters import FakeClusters
from tests.support.plane import a_call, make_plane
from tests.support.lifecycle_fixture import ResourceHandle, unhurried
from workflows import account_actions, accounts
from workflows.model.resource import Principal

pytestmark = pytest.mark.newest

SOMEBODY = Principal(id="me", tenant_id="t", owner=True)
CLONED, RESTORED = "ControlDatabaseCloned", "ControlDatabaseRestored"


@pytest.fixture
def lifecycles(db, settings, targets) -> AccountLifecycles:
    return AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))


@pytest.fixture
async def account(lifecycles) -> ResourceHandle:
    account = await lifecycles.put_account()
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    return account


def disabled(lifecycles: AccountLifecycles, account: ResourceHandle, times: int = 1):
    """So often, since it was asked."""

    async def true() -> bool:
        return (await lifecycles.path(account)).count(S.DISABLED) >= times

    return true


def in_state(lifecycles: AccountLifecycles, account: ResourceHandle, state: S):
    async def true() -> bool:
        return await lifecycles.state(account) == state

    return true


async def again(lifecycles: AccountLifecycles, account: ResourceHandle, rounds: int = 3) -> None:
    """It looks by itself so many times more."""
    before = (await lifecycles.path(account)).count(S.DISABLED)
    await lifecycles.run(until=disabled(lifecycles, account, before + rounds))


async def doctor(lifecycles: AccountLifecycles, account: ResourceHandle) -> list[str]:
    plane = make_plane(lifecycles.settings, lifecycles.db)
    told = await account_actions.doctor(plane, a_call("POST", SOMEBODY), account.id)
    return told["advice"]


async def message(lifecycles: AccountLifecycles, account: ResourceHandle) -> str:
    return (await lifecycles.resource(account))["observed"]["conditions"][0]["message"]


# Versions that do not fit


async def outgrown(lifecycles: AccountLifecycles, account: ResourceHandle) -> None:
    """The schema has become too new, and the engine ends."""
    lifecycles.launcher.fits = {"2.0.0"}
    await lifecycles.launcher.kill()
    await lifecycles.run(until=disabled(lifecycles, account))


async def test_an_engine_that_does_not_fit_is_started_once_and_told_with_both_versions(
    lifecycles, account
):
    await outgrown(lifecycles, account)

    await again(lifecycles, account, rounds=5)

    assert lifecycles.launcher.started == [1, 2]
    assert await lifecycles.conditions(account) == ["EngineIncompatible"]
    assert "engine 1.0.0" in await message(lifecycles, account)
    assert "needs 2.0.0" in await message(lifecycles, account)
    assert any("upgrade Muster there" in each for each in await doctor(lifecycles, account))
    assert not any("can't be reached" in each for each in await doctor(lifecycles, account))


async def test_one_that_ends_so_while_the_account_is_ready_is_not_replaced(lifecycles, account):
    engine = lifecycles.launcher.engines()[0]
    said = "Incompatible: engine 1.0.0 is too old for this schema, which needs 2.0.0."

    async with lifecycles.db.transaction() as tx:
        await lifecycles.queue.failure(
            tx, engine.id, reason=Reason.REPORTED, source="workload", message=said
        )
    await lifecycles.run(until=disabled(lifecycles, account))
    await again(lifecycles, account)

    assert lifecycles.launcher.started == [1]
    path = await lifecycles.path(account)
    assert path[path.index(S.READY) + 1] == S.DISABLED
    assert await lifecycles.conditions(account) == ["EngineIncompatible"]


async def test_it_heals_when_a_launcher_of_another_version_is_there(lifecycles, account):
    await outgrown(lifecycles, account)

    lifecycles.launcher.version = "2.0.0"
    await lifecycles.launcher.turn()
    await lifecycles.run()

    assert await lifecycles.state(account) == S.READY
    assert await lifecycles.conditions(account) == []
    assert lifecycles.launcher.started == [1, 2, 3]


async def test_it_heals_when_an_update_has_upgraded_the_schema(lifecycles, account):
    await outgrown(lifecycles, account)

    lifecycles.launcher.fits = {"1.0.0"}  # what the upgrade leads to
    updated = await lifecycles.resize(account, "JA200")
    await lifecycles.run()

    assert (await lifecycles.operation(updated)).status == "Succeeded"
    assert await lifecycles.state(account) == S.READY


async def test_a_schema_that_an_upgrade_of_muster_has_left_behind_is_upgraded_by_itself(
    lifecycles, account
):
    await outgrown(lifecycles, account)
    await again(lifecycles, account)
    assert lifecycles.launcher.started == [1, 2]  # the agent brings no newer schema

    lifecycles.launcher.fits = {"1.0.0"}  # what the upgrade leads to
    lifecycles.agent.schema_version = 2
    await lifecycles.run()

    assert await lifecycles.state(account) == S.READY
    assert await lifecycles.conditions(account) == []
    assert lifecycles.agent.of(account.uid).instance.schema_version == 2
    assert lifecycles.launcher.started == [1, 2, 3]


async def test_an_update_that_does_not_help_starts_one_engine_and_leaves_it_disabled(
    lifecycles, account
):
    await outgrown(lifecycles, account)

    updated = await lifecycles.resize(account, "JA200")
    await lifecycles.run(until=disabled(lifecycles, account, times=2))

    assert (await lifecycles.operation(updated)).error["code"] == "EngineIncompatible"
    assert await lifecycles.conditions(account) == ["EngineIncompatible"]
    assert lifecycles.launcher.started == [1, 2, 3]


async def test_a_creation_whose_engine_does_not_fit_fails_at_its_first_engine(lifecycles):
    lifecycles.launcher.fits = {"2.0.0"}

    account = await lifecycles.put_account()
    await lifecycles.run()

    assert (await lifecycles.operation(account)).error["code"] == "EngineIncompatible"
    assert lifecycles.launcher.started == [1]


# Launchers without room, and none at all


async def test_waiting_for_a_launcher_has_no_limit_while_one_lives(lifecycles):
    lifecycles.launcher.full = True
    account = await lifecycles.put_account()
    await lifecycles.run(until=in_state(lifecycles, account, S.STARTING_INSTANCE))

    for _ in range(10):  # 40 minutes; the state itself has 10
        await lifecycles.step(account)
        await lifecycles.advance(timedelta(minutes=4))
    assert await lifecycles.state(account) == S.STARTING_INSTANCE

    lifecycles.launcher.full = False
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY


async def test_the_time_of_the_start_counts_once_a_launcher_has_taken_it(lifecycles, monkeypatch):
    account = await lifecycles.put_account()
    await lifecycles.run(until=in_state(lifecycles, account, S.STARTING_INSTANCE))
    monkeypatch.setattr(FakeLauncher, "_comes_up", lambda *_: True)  # and no heartbeat is seen
    await lifecycles.launcher.turn()

    for _ in range(3):
        await lifecycles.advance(timedelta(minutes=4))
        await lifecycles.step(account)

    assert await lifecycles.state(account) == S.FAILED


async def test_without_a_launcher_the_account_fails_and_says_what_is_missing(lifecycles):
    lifecycles.launcher.full = True
    account = await lifecycles.put_account()
    await lifecycles.run(until=in_state(lifecycles, account, S.STARTING_INSTANCE))
    (engine,) = (each for each in await lifecycles.workloads(account) if each.kind is Kind.ENGINE)
    async with lifecycles.db.transaction() as tx:
        await lifecycles.queue.failure(
            tx, engine.id, reason=Reason.NOT_CLAIMED, source="monitor", message="no launcher"
        )

    await lifecycles.run()

    error = (await lifecycles.operation(account)).error
    assert error["code"] == "LauncherUnavailable" and "muster launcher" in error["message"]
    assert await lifecycles.state(account) == S.FAILED


# What is shown


async def test_the_last_heartbeat_is_the_one_that_was_heard_last(lifecycles, account, monkeypatch):
    plane, call = make_plane(lifecycles.settings, lifecycles.db), a_call("GET", SOMEBODY)
    before = await accounts.get(plane, call, account.id)
    engine = lifecycles.launcher.engines()[0]
    lifecycles.agent.away = True  # nobody asks the control database

    heard = (await lifecycles.queue.heartbeat(lifecycles.db, engine.id)).heartbeat_at

    queries = []
    for name in ("fetch", "fetchrow", "fetchval"):
        handle = getattr(Database, name)
        monkeypatch.setattr(
            Database, name, lambda db, q, *a, handle=handle: queries.append(q) or handle(db, q, *a)
        )
    shown = await accounts.get(plane, call, account.id)
    assert len(queries) == 1
    listed = await accounts.list_page(plane, call, account.id.parent, None, 10)
    assert len(queries) == 2
    assert shown == listed.items[0]
    assert datetime.fromisoformat(shown.observed["instance"]["lastHeartbeat"]) == heard
    assert shown.observed["instance"] != before.observed["instance"]
    assert shown.etag == before.etag


async def test_a_newer_engine_does_not_lend_its_heartbeat_to_the_one_that_is_shown(
    lifecycles, account
):
    plane, call = make_plane(lifecycles.settings, lifecycles.db), a_call("GET", SOMEBODY)
    engine = lifecycles.launcher.engines()[0]
    heard = (await lifecycles.queue.heartbeat(lifecycles.db, engine.id)).heartbeat_at
    await lifecycles.resize(account, "JA200")
    await lifecycles.run(until=lambda: _started(lifecycles, 2))

    shown = (await accounts.get(plane, call, account.id)).observed["instance"]

    assert shown["epoch"] == 1
    assert datetime.fromisoformat(shown["lastHeartbeat"]) == heard


async def _started(lifecycles: AccountLifecycles, epoch: int) -> bool:
    return epoch in lifecycles.launcher.started


# Hosts


async def test_hosts_that_end_while_a_new_engine_comes_up_are_missed_by_the_watch(
    lifecycles, account
):
    hosts = [each for each in lifecycles.launcher.alive.values() if each.kind is Kind.HOST]
    for host in hosts:
        await lifecycles.launcher._gone(
            host.id, 0, Queue(lifecycles.settings)
        )  # nobody hears of it

    await lifecycles.watch.once()
    await lifecycles.run()

    assert await lifecycles.state(account) == S.READY
    alive = [each for each in lifecycles.launcher.alive.values() if each.kind is Kind.HOST]
    assert len(alive) == len(hosts) == lifecycles.settings.engine_hosts
    assert not {each.id for each in alive} & {each.id for each in hosts}


# Acknowledgement


async def strange(lifecycles: AccountLifecycles, account: ResourceHandle, what: str) -> None:
    """The control database becomes a copy, or goes back, and the watch sees it."""
    control = lifecycles.agent.of(account.uid)
    if what == CLONED:
        control.instance.identity = uuid4()
    else:
        control.instance.epoch = 0
    await lifecycles.watch.once()


@pytest.mark.parametrize(("first", "later"), [(CLONED, RESTORED), (RESTORED, CLONED)])
async def test_what_was_acknowledged_says_nothing_about_what_comes_later(
    lifecycles, account, first, later
):
    await strange(lifecycles, account, first)
    await lifecycles.run(until=disabled(lifecycles, account))
    await lifecycles.acknowledge(account)
    lifecycles.launcher.broken = True  # accepted, and no engine comes up
    await lifecycles.run(until=disabled(lifecycles, account, times=2))
    assert await lifecycles.conditions(account) == ["EngineStartFailed"]

    lifecycles.launcher.broken = False
    started = len(lifecycles.launcher.started)
    await strange(lifecycles, account, later)
    await again(lifecycles, account)

    assert await lifecycles.conditions(account) == [later]
    assert len(lifecycles.launcher.started) == started
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY


async def test_an_acknowledgement_that_waits_does_not_cover_what_nobody_has_seen(
    lifecycles, account
):
    await strange(lifecycles, account, CLONED)
    await lifecycles.run(until=disabled(lifecycles, account))
    await lifecycles.acknowledge(account)
    scratch = await lifecycles.db.fetchval(
        "select scratch from machine where uid = $1", account.uid
    )

    found = lifecycles.agent.of(account.uid).instance
    found.identity = UUID(scratch["identity"])
    found.epoch = 0  # before it is looked at, it is ours again, but of long ago
    await lifecycles.run(until=disabled(lifecycles, account, times=2))

    assert await lifecycles.conditions(account) == [RESTORED]
    assert lifecycles.launcher.started == [1]


async def test_it_holds_over_an_engine_that_does_not_start_at_once(lifecycles, account):
    await strange(lifecycles, account, CLONED)
    await lifecycles.run(until=disabled(lifecycles, account))
    lifecycles.launcher.broken = True
    await lifecycles.acknowledge(account)
    await lifecycles.run(until=disabled(lifecycles, account, times=2))

    lifecycles.launcher.broken = False
    await lifecycles.run()

    assert await lifecycles.state(account) == S.READY


async def test_a_database_that_came_back_empty_is_set_up_anew_once_that_is_acknowledged(
    lifecycles, account
):
    (where,) = lifecycles.agent.databases
    lifecycles.agent.databases.clear()
    await lifecycles.watch.once()
    await lifecycles.run(until=disabled(lifecycles, account))
    lifecycles.agent.create(*where)
    await again(lifecycles, account)
    assert await lifecycles.conditions(account) == ["ControlSchemaMissing"]

    await lifecycles.acknowledge(account)
    await lifecycles.run()

    assert await lifecycles.state(account) == S.READY
    assert lifecycles.agent.of(account.uid).epochs == [2]


async def test_the_action_acknowledges_what_is_shown(lifecycles, account):
    await strange(lifecycles, account, CLONED)
    await lifecycles.run(until=disabled(lifecycles, account))
    plane = make_plane(lifecycles.settings, lifecycles.db)

    await account_actions.acknowledge(plane, a_call("POST", SOMEBODY), account.id)

    payload = await lifecycles.db.fetchval("select payload from signal where name = 'acknowledge'")
    assert payload == {"acknowledged": [CLONED]}
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY


# Updates of an account that is disabled


async def test_an_update_of_a_disabled_account_that_fails_leaves_it_disabled_with_its_condition(
    lifecycles, account
):
    await strange(lifecycles, account, CLONED)
    await lifecycles.run(until=disabled(lifecycles, account))
    since = (await lifecycles.resource(account))["observed"]["conditions"]

    updated = await lifecycles.resize(account, "JA200")
    assert (await lifecycles.resource(account))["provisioning_state"] == "Updating"
    await lifecycles.run(until=disabled(lifecycles, account, times=2))

    row = await lifecycles.resource(account)
    assert (row["observed"]["state"], row["provisioning_state"]) == ("Disabled", "Succeeded")
    assert row["observed"]["conditions"] == since
    assert row["sku"]["name"] == "JA100"
    assert (await lifecycles.operation(updated)).error["code"] == CLONED
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY


async def test_an_update_after_the_cause_is_gone_brings_it_back(lifecycles, account):
    kept = dict(lifecycles.agent.databases)
    lifecycles.agent.databases.clear()
    await lifecycles.watch.once()
    await lifecycles.run(until=disabled(lifecycles, account))

    lifecycles.agent.databases.update(kept)
    updated = await lifecycles.resize(account, "JA200")
    await lifecycles.run()

    assert (await lifecycles.operation(updated)).status == "Succeeded"
    assert await lifecycles.state(account) == S.READY
    assert await lifecycles.conditions(account) == []
    assert (await lifecycles.resource(account))["sku"]["name"] == "JA200"


async def test_an_update_that_fails_after_that_is_one_of_a_ready_account(lifecycles, account):
    await strange(lifecycles, account, CLONED)
    await lifecycles.run(until=disabled(lifecycles, account))
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    lifecycles.launcher.broken = True

    updated = await lifecycles.resize(account, "JA200")
    await lifecycles.run()

    assert (await lifecycles.operation(updated)).error["code"] == "EngineStartFailed"
    assert await lifecycles.state(account) == S.READY


async def test_an_identity_is_accepted_and_said_to_have_no_effect(lifecycles, account):
    before = await lifecycles.conditions(account)
    one = {"type": "UserAssigned", "userAssignedIdentities": {"/identities/one": {}}}
    set_identity = "update resource set identity = $2 where uid = $1"

    await lifecycles.db.execute(set_identity, account.uid, one)
    await lifecycles.resize(account, "JA200")
    await lifecycles.run()
    given = await lifecycles.conditions(account)
    await lifecycles.db.execute(set_identity, account.uid, {"type": "None"})
    await lifecycles.resize(account, "JA100")
    await lifecycles.run()

    assert (before, given) == ([], ["IdentityHasNoEffect"])
    assert await lifecycles.conditions(account) == []
