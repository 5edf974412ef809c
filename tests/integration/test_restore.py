"""`muster backup` and `muster restore`: an installation with a run that is under way, on another data directory."""

import asyncio
import json

import pytest

from fsm.account import S
from muster.core import cluster_backup
from muster.core.errors import Unavailable
from muster.core.settings import Secret
from muster.roles import backup, restore
from tests.support.account_fixture import AccountLifecycles
from tests.support.fake_clusters import FakeClusters
from tests.support.lifecycle_fixture import unhurried
from tests.support.stack import SERVER, a_job, a_server, an_account, muster_up, until

pytestmark = pytest.mark.newest

PHRASE = Secret("correct horse battery")
RESTORED = "ControlDatabaseRestored"
RUNNING = "WaitingForChildJobExecutions"
MADE_AT = "2026-01-01T00:00:00Z"
TENANTS = ("t1", "t2")
SCRIPT = """
    insert into effect default values;
    select pg_sleep(case when (select released from release) then 0 else 600 end)
"""


@pytest.fixture
def marked(tmp_path):
    (tmp_path / restore.MARKER).write_text(json.dumps({"madeAt": MADE_AT}))
    return tmp_path


async def test_no_engine_starts_after_a_restore_until_it_is_acknowledged(
    db, settings, targets, marked
):
    lifecycles = AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))
    account = await lifecycles.put_account()
    await lifecycles.run()
    before = await lifecycles.workloads(account)

    assert await restore.take_over(settings, marked) == MADE_AT

    after = await lifecycles.workloads(account)
    assert len(after) == len(before) == 2
    assert all(each.state.over and each.gone_at is not None for each in after)
    assert await db.fetchval("select count(*) from launcher") == 0
    await lifecycles.watch.once()

    async def disabled() -> bool:
        return await lifecycles.state(account) == S.DISABLED

    await lifecycles.run(until=disabled)
    assert await lifecycles.conditions(account) == [RESTORED]
    assert lifecycles.launcher.started == [1]
    await lifecycles.acknowledge(account)
    await lifecycles.run()
    assert await lifecycles.state(account) == S.READY
    assert lifecycles.launcher.started == [1, 2]


async def test_a_start_that_was_killed_before_it_forgot_the_marker_takes_over_again(
    db, settings, targets, marked, monkeypatch
):
    lifecycles = AccountLifecycles(db, unhurried(settings), targets, FakeClusters(targets))
    account = await lifecycles.put_account()
    await lifecycles.run()
    with monkeypatch.context() as patch:
        patch.setattr(restore, "sync_folder", lambda _: None)
        patch.setattr("pathlib.Path.unlink", _killed)
        with pytest.raises(KeyboardInterrupt):
            await restore.take_over(settings, marked)

    assert await restore.take_over(settings, marked) == MADE_AT

    assert not (marked / restore.MARKER).exists()
    assert await restore.take_over(settings, marked) is None
    scratch = await db.fetchval("select scratch from machine where uid = $1", account.uid)
    assert scratch["restoredFromBackupOf"] == MADE_AT


def _killed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_run_goes_on_in_the_restored_installation(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    quick = {"MUSTER_ACCOUNT_CHECK": "500ms"}
    with muster_up(first, **quick) as stack:
        a_server(stack)
        path = an_account(stack, "kept")
        for name in TENANTS:
            stack.put(f"{SERVER}/databases/{name}", {"location": "local"})
            stack.psql(name, "create table effect (n int generated always as identity)")
            stack.psql(name, "create table release as select false as released")
        a_job(stack, path, "work", SCRIPT, *TENANTS)
        stack.client.post(f"{path}/jobs/work/start").raise_for_status()
        run = _newest(stack, path)
        until(lambda: _lifecycle(stack, run) == RUNNING)
        until(lambda: _sleeping(stack) == len(TENANTS))

        asyncio.run(backup.Backup(stack.folder, tmp_path / "backup", PHRASE).run())

        assert _sleeping(stack) == len(TENANTS)  # nothing was disturbed

    with monkeypatch.context() as patch:
        patch.setattr(cluster_backup, "unpack", _second_fails(cluster_backup.unpack))
        with pytest.raises(Unavailable):
            asyncio.run(restore.restore(tmp_path / "backup", second / "data", PHRASE))
    assert list(second.iterdir()) == []

    asyncio.run(restore.restore(tmp_path / "backup", second / "data", PHRASE))

    with muster_up(second, **quick) as stack:
        until(lambda: _conditions(stack, path) == [RESTORED], seconds=60)
        assert _lifecycle(stack, run) == RUNNING
        for name in TENANTS:
            assert len(stack.psql(name, "select from effect")) == 0  # rolled back with its session
            stack.psql(name, "update release set released = true")
        stack.client.post(f"{path}/acknowledge").raise_for_status()
        until(lambda: _lifecycle(stack, run) == "Succeeded", seconds=90)
        for name in TENANTS:
            assert len(stack.psql(name, "select from effect")) == 1


def _newest(stack, account):
    return stack.get(f"{account}/jobs/work/executions")["value"][0]["id"]


def _lifecycle(stack, run):
    return stack.get(run)["properties"]["lifecycle"]


def _sleeping(stack):
    query = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'"
    return stack.psql("postgres", query)[0][0]


def _conditions(stack, account):
    shown = stack.get(account)["properties"]
    return [each["type"] for each in shown.get("conditions") or []]


def _second_fails(unpack):
    done = []

    async def failing(*arguments, **more):
        if done:
            raise Unavailable("The disk is full.", code="DiskFull")
        done.append(await unpack(*arguments, **more))

    return failing
