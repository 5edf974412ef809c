"""The last word on an attempt whose host is lost."""

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import msgspec
import pytest

from engine.core import orphaned_attempt as judging
from engine.access.credentials import Credentials
from engine.core.orphaned_attempt import OrphanOutcome, resolve_orphan
from engine.access.server_connection import ServerConnection
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.errors import Unavailable
from muster.core.settings import Secret
from tests.support.attempts import IDENTITY, a_target_database, settings, until

pytestmark = pytest.mark.targets


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(f"set role {made.owner.name}; create table t (id int)")
        yield made


async def ask(target, task, *, server=None, **given):
    known = {
        "backend_pid": None, "old_invocation": task.invocation_id, "xact_id": None,
        "started": datetime.now(UTC),
    }  # fmt: skip
    return await resolve_orphan(a_way(target, server), target.database, **(known | given))


def a_way(target, server=None):
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    there = server or target.server
    return ServerConnection(Connector(settings()), there, target.who(), credentials, IDENTITY)


async def lost_while_running(target, task, script="insert into t values (1); select pg_sleep(60)"):
    """A host that is gone without a word; its backend goes on."""
    running = asyncio.create_task(target.run(script, task))
    seen = "select pid from pg_stat_activity where wait_event = 'PgSleep' and application_name = $1"
    pid = await until(lambda: target.value(seen, f"muster {task.invocation_id.hex}"))
    return running, pid


async def alive(target, pid):
    return await target.value("select count(*) from pg_stat_activity where pid = $1", pid)


async def test_what_still_runs_is_ended_and_seen_gone(target):
    task = target.task()
    running, pid = await lost_while_running(target, task)

    assert await ask(target, task, backend_pid=pid) is OrphanOutcome.ABORTED
    assert not await alive(target, pid)
    assert (await running).reason == "ConnectionLost"
    assert await target.value("select count(*) from t") == 0


async def test_it_is_found_by_its_name_where_the_pid_is_a_poolers(target):
    task = target.task()
    running, pid = await lost_while_running(target, task)
    pooled = msgspec.structs.replace(
        target.server, pooling="transaction", direct_host=target.targets.host
    )

    assert await ask(target, task, server=pooled, backend_pid=pid + 1) is OrphanOutcome.ABORTED
    assert not await alive(target, pid)
    await running


async def test_a_session_that_has_said_nothing_yet_is_ended_by_its_pid(target):
    """The host stopped between the start and the first message: it must not begin later."""
    session = await target.lend()

    assert (
        await ask(target, target.task(), backend_pid=session.backend_pid) is OrphanOutcome.ABORTED
    )
    assert not await alive(target, session.backend_pid)
    target.sessions.give_back(session)


async def test_a_pid_that_was_given_anew_is_left_alone(target):
    session = await target.lend()
    long_ago = datetime.now(UTC) - timedelta(hours=1)

    assert (
        await ask(target, target.task(), backend_pid=session.backend_pid, started=long_ago)
        is OrphanOutcome.ABORTED
    )
    assert await alive(target, session.backend_pid)
    target.sessions.give_back(session)


async def test_others_are_left_alone(target):
    task, other = target.task(), target.task()
    running, pid = await lost_while_running(target, other)
    async with target.connection() as root:
        assert await ask(target, task, backend_pid=root.get_server_pid()) is OrphanOutcome.ABORTED
        assert await root.fetchval("select 1") == 1
    assert await alive(target, pid)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_commit_that_was_answered_to_nobody_is_known(target):
    task = target.task()
    outcome = await target.run("insert into t values (1)", task)
    [xact] = target.intended

    assert outcome.lifecycle == "Succeeded"
    assert await ask(target, task, xact_id=xact) is OrphanOutcome.COMMITTED


async def test_what_was_intended_and_not_committed_is_known(target):
    async def dies(xact):
        target.intended.append(xact)
        return False

    task = target.task()
    assert await target.run("insert into t values (1)", task, intend=dies) is None
    [xact] = target.intended

    assert await ask(target, task, xact_id=xact) is OrphanOutcome.ABORTED


async def test_a_transaction_that_waits_for_its_commit_is_ended(target):
    intended, go = asyncio.Event(), asyncio.Event()

    async def hangs(xact):
        target.intended.append(xact)
        intended.set()
        await go.wait()
        return True

    task = target.task()
    running = asyncio.create_task(target.run("insert into t values (1)", task, intend=hangs))
    await intended.wait()

    assert await ask(target, task, xact_id=target.intended[0]) is OrphanOutcome.ABORTED
    go.set()
    outcome = await running
    assert (outcome.lifecycle, outcome.reason) == ("Failed", "ConnectionLost")
    assert await target.value("select count(*) from t") == 0


@pytest.mark.parametrize(
    "given",
    [
        {"xact_id": "autocommit"},
        {"xact_id": "123@0000000A"},  # of another timeline
        {"xact_id": "99999999999"},  # of another server
        {"xact_id": "3"},  # too old to be known
    ],
)
async def test_what_can_not_be_told_is_unknown(target, given):
    assert await ask(target, target.task(), **given) is OrphanOutcome.UNKNOWN


async def test_a_target_that_is_away_is_a_fault(target):
    gone = msgspec.structs.replace(target.server, port=1025)

    with pytest.raises(Unavailable):
        await ask(target, target.task(), server=gone)


async def test_a_session_that_does_not_end_is_a_fault(target, monkeypatch):
    monkeypatch.setattr(judging, "SESSION_END_TIMEOUT", 0.5)
    task = target.task()
    running, pid = await lost_while_running(target, task)
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="does not end"):
            await ask(target, task, backend_pid=pid)
    finally:
        os.kill(pid, signal.SIGCONT)
    await running


async def test_the_login_is_named_by_the_target(target):
    who = msgspec.structs.replace(target.who(), username="$(target_database_name)")
    way = a_way(target)._replace(credential=who)

    outcome = await resolve_orphan(
        way, target.database, backend_pid=None, old_invocation=uuid4(), xact_id=None, started=None
    )  # fmt: skip

    assert outcome is OrphanOutcome.ABORTED


async def test_a_secret_that_was_changed_is_read_again(target):
    way = a_way(target)
    async with way.session(target.database, "t"):
        pass
    await target.execute(f"alter role {target.owner.name} password 'newer'")
    (target.home / target.owner.name).write_text("newer")

    async with way.session(target.database, "t") as connection:
        assert await connection.fetchval("select 1") == 1
