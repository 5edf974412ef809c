"""Sessions are lent within budget and rate, in order, clean, and none stays."""

import asyncio
import contextlib
from uuid import UUID

import asyncpg
import msgspec
import pytest

from engine.pool import pool as lending
from engine.pool.dialer import Q
from engine.pool.errors import Full
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from tests.support.attempts import IDENTITY, a_target_database, now, record_messages, until
from tests.support.tcp_proxy import proxy_to
from tests.support.postgres import Role
from tests.support.refusing import refusing

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        yield made


@pytest.fixture
async def more(target):
    """Two further databases of the same owner."""
    names = [f"{target.database}_{letter}" for letter in "ab"]
    for name in names:
        await target.execute(f"create database {name} owner {target.owner.name} template template0")
    yield names
    await target.sessions.close()
    for name in names:
        await target.execute(f"drop database {name}")


async def pid(session):
    [found] = await session.query("select pg_backend_pid()")
    return found.rows[0][0]


async def rests(target):
    await until(lambda: settled(target))


async def settled(target):
    return not target.sessions._background


async def test_a_session_is_lent_again_without_a_word(target):
    first = await target.lend()
    target.sessions.give_back(first)
    await rests(target)
    said = record_messages(first)

    second = await target.lend()

    assert second is first
    assert said == []
    assert (second.waited < 1, second.connecting) == (True, 0.0)
    target.sessions.give_back(second)


async def test_who_comes_while_it_is_cleaned_waits_for_it(target):
    first = await target.lend()
    target.sessions.give_back(first)
    second = await target.lend()

    assert second is first
    assert await target.ours() == 1
    target.sessions.give_back(second)


async def test_one_that_is_in_use_is_waited_for_before_another_is_opened(target, monkeypatch):
    monkeypatch.setattr(lending, "REUSE_WAIT", 60.0)
    first = await target.lend()
    second = asyncio.create_task(target.lend())
    await asyncio.sleep(0.05)
    assert not second.done()
    target.sessions.give_back(first)

    assert await second is first
    assert await target.ours() == 1

    monkeypatch.setattr(lending, "REUSE_WAIT", 0.01)
    third = await target.lend()
    assert third is not first
    for each in (first, third):
        target.sessions.give_back(each)


async def test_nothing_is_left_for_the_next_borrower(target):
    session = await target.lend()
    await session.execute(
        "set work_mem = '77MB'; set search_path = pg_catalog; select pg_advisory_lock(42);"
        " prepare p as select 1; listen news; create temporary table left_over ();"
        " select set_config('app.secret', 'x', false); declare c cursor with hold for select 1"
    )
    target.sessions.give_back(session)
    again = await target.lend()

    assert again is session
    [found] = await again.query(
        """select current_setting('work_mem'), current_setting('search_path'),
                  (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
                  (select count(*) from pg_prepared_statements), (select count(*) from pg_listening_channels()),
                  to_regclass('left_over') is null, current_setting('app.secret'),
                  (select count(*) from pg_cursors where name = 'c'), current_setting('application_name')"""
    )
    assert found.rows == [["4MB", '"$user", public, pg_temp', 0, 0, 0, True, "", 0, "muster"]]
    target.sessions.give_back(again)


async def test_an_open_transaction_is_undone(target):
    await target.execute(f"set role {target.owner.name}; create table t (id int)")
    session = await target.lend()
    await session.execute("begin; insert into t values (1)")
    target.sessions.give_back(session)
    again = await target.lend()

    assert again is session
    assert not again.in_transaction
    assert await target.value("select count(*) from t") == 0
    target.sessions.give_back(again)


async def test_a_session_that_is_not_clean_is_closed(target):
    session = await target.lend()
    await session.execute("begin")
    with pytest.raises(asyncpg.PostgresError):
        await session.execute("select 1/0")
    session.unusable = True
    target.sessions.give_back(session)
    await rests(target)

    assert await target.ours() == 0


async def test_another_credential_version_or_database_gets_a_session_of_its_own(target, more):
    async def lend(database=target.database, **changes):
        who = msgspec.structs.replace(target.who(), **changes)
        return await target.sessions.lend(
            target.server, database, who, IDENTITY, direct=False, deadline=now() + 10
        )

    first = await lend()
    target.sessions.give_back(first)
    others = [await lend(row_version=2), await lend(credential_id=UUID(int=5)), await lend(more[0])]

    assert first not in others
    assert await target.ours() == 4
    for each in others:
        target.sessions.give_back(each)


async def test_the_budget_is_never_exceeded(target, more):
    target.server = msgspec.structs.replace(target.server, max_connections=6)
    most, running = 0, True
    # The server itself refuses a sixth session: a list of sessions counts one that ends while it is read, and its successor.
    async with target.connection() as connection:
        await connection.execute(f'alter role "{target.owner.name}" connection limit 5')

    async def watch():
        nonlocal most
        async with target.connection() as connection:
            while running:
                found = await connection.fetchval(
                    "select count(*) from pg_stat_activity where usename = $1", target.owner.name
                )
                most = max(most, found)

    async def borrow(number):
        session = await target.lend(database=[target.database, *more][number % 3])
        await session.execute("select pg_sleep(0.01)")
        target.sessions.give_back(session)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(borrow(number) for number in range(50)))
    running = False
    await watching

    assert most > 2


async def test_those_who_wait_are_served_in_their_order(target):
    target.server = msgspec.structs.replace(target.server, max_connections=2)
    first = await target.lend()
    served = []

    async def borrow(number):
        session = await target.lend()
        served.append(number)
        target.sessions.give_back(session)

    waiting = []
    for number in range(5):
        waiting.append(asyncio.create_task(borrow(number)))
        await asyncio.sleep(0)
    assert target.sessions.why(target.server.server_id) == "ServerConnections"
    target.sessions.give_back(first)
    await asyncio.gather(*waiting)

    assert served == [0, 1, 2, 3, 4]


async def test_the_oldest_idle_session_gives_way_to_another_database(target, more):
    target.server = msgspec.structs.replace(target.server, max_connections=3)
    old = await target.lend()
    young = await target.lend(database=more[0])
    for session in (old, young):
        target.sessions.give_back(session)
        await rests(target)

    newer = await target.lend(database=more[1])
    again = await target.lend(database=more[0])

    assert again is young
    assert old.lost
    assert await target.ours() == 2
    target.sessions.give_back(newer)
    target.sessions.give_back(again)


async def test_who_came_first_gets_the_place_of_an_idle_one_that_others_want(target, more):
    target.server = msgspec.structs.replace(target.server, max_connections=2)
    held = await target.lend()
    first = asyncio.create_task(target.lend(database=more[0]))
    await asyncio.sleep(0)
    second = asyncio.create_task(target.lend())
    await asyncio.sleep(0)
    target.sessions.give_back(held)

    session = await first
    assert not second.done()
    target.sessions.give_back(session)
    target.sessions.give_back(await second)


async def test_idle_sessions_are_closed_after_a_while(target, monkeypatch):
    monkeypatch.setattr(lending, "IDLE_TIMEOUT", 0.05)
    session = await target.lend()
    target.sessions.give_back(session)

    await until(lambda: nobody(target))


async def nobody(target):
    return await target.ours() == 0


async def test_new_connections_come_no_quicker_than_the_rate(target):
    target.server = msgspec.structs.replace(
        target.server, max_connections=50, connections_per_second=4.0
    )
    began = now()
    sessions = await asyncio.gather(*(target.lend() for _ in range(9)))
    took = now() - began

    assert took >= 1.9
    for session in sessions:
        target.sessions.give_back(session)


async def test_a_server_is_asked_what_it_bears_at_first_contact(target):
    target.server = msgspec.structs.replace(target.server, max_connections=None)
    first = await target.lend()
    [contact] = target.contacts
    others = await asyncio.gather(*(target.lend() for _ in range(contact.budget - 2)))

    assert (contact.server_id, contact.budget, contact.max_connections) == (
        target.server.server_id,
        20,
        1000,
    )
    assert contact.server_version == first.version >= 120_000
    assert len(target.contacts) == 1
    with pytest.raises(Full) as full:
        await target.lend(deadline=now() + 0.05)
    assert full.value.why == "ServerConnections"
    for session in (first, *others):
        target.sessions.give_back(session)


async def test_sessions_of_others_count_although_we_may_not_see_what_they_are(target):
    async with contextlib.AsyncExitStack() as stack:
        plain = await stack.enter_async_context(target.connection(target.owner))
        before = await plain.fetchrow(Q.contact)
        for _ in range(3):
            await stack.enter_async_context(target.connection())

        assert (await plain.fetchrow(Q.contact))["others"] == before["others"] + 3


async def test_a_crowded_server_halves_the_budget(target):
    target.server = msgspec.structs.replace(target.server, max_connections=9)
    await target.execute(f"alter role {target.owner.name} connection limit 5")
    sessions = [await target.lend() for _ in range(5)]

    with pytest.raises(Full) as full:
        await target.lend()
    assert (full.value.why, isinstance(full.value, Unavailable)) == ("ServerFull", True)
    for session in sessions:
        target.sessions.give_back(session)
    await rests(target)

    assert await target.ours() == 4
    again = [await target.lend() for _ in range(4)]
    with pytest.raises(Full):
        await target.lend(deadline=now() + 0.05)
    for session in again:
        target.sessions.give_back(session)


@pytest.mark.parametrize(
    ("sqlstate", "why"), [("53300", "ServerFull"), ("57P03", "ServerStarting")]
)
async def test_a_server_that_has_no_session_for_us_is_quoted(target, sqlstate, why):
    said = "the database system \x1b[31mis not yet\n accepting connections." + "x" * 9000
    async with refusing(sqlstate, said) as port:
        target.server = msgspec.structs.replace(target.server, port=port, ssl_mode="disable")

        with pytest.raises(Full) as full:
            await target.lend()

    assert (full.value.why, full.value.server_message[:40]) == (
        why,
        "the database system [31mis not yet accep",
    )
    assert len(full.value.server_message) == 500
    assert "database system" not in full.value.message, "it is a stranger's"


async def test_what_can_not_be_connected_frees_its_place(target):
    target.server = msgspec.structs.replace(target.server, max_connections=2)
    wrong = Role(target.owner.name + "_no", "x")
    for _ in range(3):
        with pytest.raises(InvalidRequest) as refused:
            await target.lend(role=wrong)
        assert refused.value.code == "TargetAuthenticationFailed"
        with pytest.raises(NotFound) as unknown:
            await target.lend(database="nowhere")
        assert unknown.value.code == "TargetDatabaseNotFound"
    gone = msgspec.structs.replace(target.server, port=1025)
    with pytest.raises(Unavailable) as away:
        await target.sessions.lend(
            gone, target.database, target.who(), IDENTITY, direct=False, deadline=now() + 5
        )
    assert away.value.code == "TargetUnreachable"

    session = await target.lend()
    target.sessions.give_back(session)


async def test_a_secret_that_was_changed_is_read_again(target):
    session = await target.lend()
    session.unusable = True
    target.sessions.give_back(session)
    await target.execute(f"alter role {target.owner.name} password 'newer'")
    (target.home / target.owner.name).write_text("newer")

    session = await target.lend()
    target.sessions.give_back(session)

    assert await target.ours() == 1, "the session that was opened with the new password"


async def test_who_gives_up_waiting_leaves_nothing_behind(target):
    target.server = msgspec.structs.replace(target.server, max_connections=2)
    held = await target.lend()
    waiting = [asyncio.create_task(target.lend()) for _ in range(3)]
    await asyncio.sleep(0.01)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    target.sessions.give_back(held)

    session = await target.lend()
    assert await target.ours() == 1
    target.sessions.give_back(session)


async def test_who_gives_up_in_the_moment_it_is_served_gives_it_on(target):
    target.server = msgspec.structs.replace(target.server, max_connections=2)
    held = await target.lend()
    waiting = asyncio.create_task(target.lend())
    await asyncio.sleep(0.01)
    target.sessions._make_idle(held)  # granted, and not yet taken
    target.sessions._lent.discard(held)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    session = await target.lend()
    assert session is held
    target.sessions.give_back(session)


async def test_an_idle_session_that_the_server_ended_is_not_lent(target):
    session = await target.lend()
    target.sessions.give_back(session)
    await rests(target)
    await target.execute(f"select pg_terminate_backend({session.backend_pid})")
    await until(lambda: lost(session))

    other = await target.lend()
    assert other is not session
    assert await pid(other) != session.backend_pid
    assert len(target.contacts) == 2  # it may be another server now
    target.sessions.give_back(other)


async def lost(session):
    return session.lost


async def test_nothing_stays_open_after_the_end(target, more):
    lent = await target.lend()
    busy = await target.lend(database=more[0])
    idle = await target.lend(database=more[1])
    target.sessions.give_back(idle)
    running = asyncio.create_task(busy.execute("select pg_sleep(60)"))
    waiting = [asyncio.create_task(target.lend()) for _ in range(9)]
    await asyncio.sleep(0.2)

    await target.sessions.close()

    assert lent.lost
    with pytest.raises(asyncpg.PostgresConnectionError):
        await running
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert any(isinstance(each, Full) for each in ended)
    await until(lambda: nobody(target))
    with pytest.raises(Full):
        await target.lend()


async def test_a_line_that_is_dead_does_not_keep_the_end_waiting(target):
    async with proxy_to(target.targets.port) as proxy:
        target.server = msgspec.structs.replace(target.server, port=proxy.port)
        session = await target.lend()
        proxy.hold()
        target.sessions.give_back(session)
        async with asyncio.timeout(15):
            await target.sessions.close()

    assert session.lost, "the connection is closed"


async def test_a_second_session_is_the_servers_spare_one(target):
    session = await target.lend()
    order = []

    async def look(number):
        async with session.second_connection() as other:
            order.append(number)
            assert await other.fetchval("select current_user") == target.owner.name
            assert await target.ours() == 2
            order.append(number)

    await asyncio.gather(*(look(number) for number in range(3)))

    assert order == [0, 0, 1, 1, 2, 2]
    assert await target.ours() == 1
    target.sessions.give_back(session)


async def test_who_is_just_connecting_at_the_end_gets_nothing(target):
    async with proxy_to(target.targets.port) as proxy:
        target.server = msgspec.structs.replace(target.server, port=proxy.port)
        proxy.hold()
        opening = asyncio.create_task(target.lend())
        await asyncio.sleep(0.05)
        closing = asyncio.create_task(target.sessions.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        proxy.restore()
        await closing

        with pytest.raises(Full):
            await opening
        await until(lambda: nobody(target))


async def test_a_shorter_wait_is_not_hidden_by_a_longer_one(target):
    """A crowded server grows in ten seconds; a place that becomes free is taken at once."""
    target.server = msgspec.structs.replace(
        target.server, max_connections=5, connections_per_second=2.0
    )
    first, second = await target.lend(), await target.lend()
    server_pool = target.sessions._server_pools[target.server.server_id]
    server_pool.budget.shrink(4, now())
    waiting = asyncio.create_task(target.lend())
    await asyncio.sleep(0.01)
    assert server_pool.timer is not None
    for session in (first, second):
        session.unusable = True
        target.sessions.give_back(session)

    async with asyncio.timeout(5):
        target.sessions.give_back(await waiting)
