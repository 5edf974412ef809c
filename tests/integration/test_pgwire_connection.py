"""What is said to a target and heard from it, also from one that lies."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator

import asyncpg
import pytest
from msgspec.structs import replace

from engine.model.server import TargetServer
from tests.support.attempts import TargetDatabase, a_target_database, record_messages, until
from tests.support.tcp_proxy import HOST

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(f"set role {made.owner.name}; create table t (n int)")
        yield made


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", 4 + len(body)) + body


def ready(status: bytes) -> bytes:
    return message(b"Z", status)


REFUSED = message(b"E", b"SERROR\0VERROR\0C23505\0Mno\0\0")


@contextlib.asynccontextmanager
async def liar(
    target: TargetDatabase, answer: bytes, *, closes: bool = False
) -> AsyncIterator[TargetServer]:
    """The real server until COMMIT, which is answered with this; then nothing comes any more."""
    talks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection(HOST, target.targets.port)
        down = asyncio.create_task(pump(there_reader, writer))
        try:
            while data := await reader.read(65_536):
                if b"commit\0" in data:
                    down.cancel()
                    writer.write(answer)
                    if closes:
                        return
                    await asyncio.sleep(600)
                there_writer.write(data)
        finally:
            down.cancel()
            for each in (there_writer, writer):
                each.close()
                with contextlib.suppress(OSError):
                    await each.wait_closed()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)

    def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(serve(reader, writer))
        talk.add_done_callback(lambda _: writer.close())  # also when it was over before it began
        talks.add(talk)

    server = await asyncio.start_server(meet, HOST, 0)
    try:
        yield replace(target.server, port=server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


# COMMIT, and the cleaning behind it


async def test_a_commit_and_the_cleaning_behind_it_are_said_in_one_breath(target):
    first = await target.lend()
    said = record_messages(first)
    target.sessions.give_back(first)
    outcome = await target.run("set my.mark = 'here'; create temporary table mine (n int)")
    second = await target.lend()
    [mark, left] = await second.query(
        "select current_setting('my.mark', true); select to_regclass('mine')"
    )

    assert outcome.lifecycle == "Succeeded"
    assert second is first
    assert said[-3:-1] == ["commit", "discard all"]
    assert (mark.rows, left.rows) == ([[""]], [[None]])
    target.sessions.give_back(second)


async def test_a_session_is_clean_after_a_commit_that_failed(target):
    await target.execute(
        "create table u (n int primary key deferrable initially deferred);"
        f"alter table u owner to {target.owner.name}"
    )
    first = await target.lend()
    target.sessions.give_back(first)
    outcome = await target.run("insert into u values (1); insert into u values (1)")
    second = await target.lend()

    assert (outcome.lifecycle, outcome.sqlstate) == ("Failed", "23505")
    assert second is first
    assert await second.query("select count(*) from u")
    target.sessions.give_back(second)


async def test_what_is_asked_while_it_is_cleaned_is_answered_by_itself(target):
    session = await target.lend()
    await session.execute("begin")
    assert await session.execute_and_reset("commit") == "COMMIT"
    said = record_messages(session)
    [found] = await session.query("select 7")
    target.sessions.give_back(session)
    again = await target.lend()

    assert found.rows == [[7]]
    assert said == ["select 7", "discard all"]  # it was not clean any more
    assert again is session
    target.sessions.give_back(again)


# Answers


async def test_who_gives_up_on_an_answer_loses_the_session(target):
    session = await target.lend()
    asking = asyncio.create_task(session.query("select pg_sleep(60)"))
    await until(
        lambda: target.value(
            "select exists (select from pg_stat_activity where query like '%sleep(60)')"
        )
    )
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert (session.lost, session.unusable) == (True, True)
    with pytest.raises(asyncpg.InterfaceError):
        await session.execute("select 1")
    target.sessions.give_back(session)
    await until(lambda: _none(target))


async def _none(target):
    return await target.ours() == 0


async def test_an_answer_that_nobody_asked_for_ends_the_session(target):
    session = await target.lend()
    session._queue(session.framed("select 1"))
    await until(lambda: _lost(session))

    assert session.result_reader.dialer.refusal == "it speaks out of turn"
    target.sessions.give_back(session)


async def _lost(session):
    return session.lost


async def test_a_script_may_change_its_encoding(target):
    outcome = await target.run(
        "set client_encoding = 'latin1'; select 'ü' = U&'\\00FC', octet_length('ü')"
    )
    after = await target.run("select octet_length('ü')")

    assert outcome.results[-1]["rows"] == [[True, 2]]
    assert after.results[-1]["rows"] == [[2]]


async def test_what_is_noticed_at_the_commit_is_told(target):
    await target.execute(
        f"""set role {target.owner.name};
            create function late() returns trigger language plpgsql as
                $$ begin raise warning 'at the end'; return null; end $$;
            create constraint trigger late after insert on t deferrable initially deferred
                for each row execute function late()"""
    )
    outcome = await target.run("insert into t values (1)")

    assert outcome.lifecycle == "Succeeded"
    assert [each["message"] for each in outcome.notices] == ["at the end"]


@pytest.mark.parametrize("status", [b"E", b"T"])
async def test_a_server_that_refuses_a_commit_and_falls_silent_is_left(target, monkeypatch, status):
    monkeypatch.setattr("engine.attempt.script_run.ROLLBACK_TIMEOUT", 0.2)
    async with liar(target, REFUSED + ready(status)) as server, asyncio.timeout(20):
        outcome = await target.run("insert into t values (1)", server=server)

    assert (outcome.lifecycle, outcome.sqlstate) == ("Failed", "23505")
    await target.sessions.close()


async def test_a_refusal_is_one_although_the_line_breaks_behind_it(target):
    async with liar(target, REFUSED + ready(b"I"), closes=True) as server:
        outcome = await target.run("insert into t values (1)", server=server)

    assert (outcome.lifecycle, outcome.reason, outcome.sqlstate) == (
        "Failed",
        "StatementFailed",
        "23505",
    )


async def test_a_cleaning_that_is_not_answered_costs_the_session(target, monkeypatch):
    monkeypatch.setattr("engine.pgwire.connection.RESET_TIMEOUT", 0.2)
    async with liar(target, message(b"C", b"COMMIT\0") + ready(b"I")) as server:
        outcome = await target.run("insert into t values (1)", server=server)
        await until(lambda: _closed(target))

    assert outcome.lifecycle == "Succeeded"


async def _closed(target):
    return all(server_pool.open == 0 for server_pool in target.sessions._server_pools.values())


# Floods, codes and letters


@pytest.mark.parametrize(
    "more", [{}, {"transaction": "none"}, {"settings": {"access": "readOnly"}}]
)
async def test_a_flood_that_ends_with_its_answer_is_one(target, more):
    outcome = await target.run("select generate_series(1, 100001)", **more)

    assert (outcome.lifecycle, outcome.reason) == ("Failed", "ResultTooLarge")
    assert outcome.retry is False


async def test_a_flood_commits_nothing_and_intends_nothing(target):
    outcome = await target.run("insert into t values (1); select generate_series(1, 100001)")

    assert (outcome.reason, target.intended) == ("ResultTooLarge", [])
    assert await target.value("select count(*) from t") == 0


@pytest.mark.parametrize("code", ["01000", "02000", "08003", "08006"])
async def test_a_script_may_fail_with_any_code(target, code):
    outcome = await target.run(f"do $$ begin raise exception 'x' using errcode = '{code}'; end $$")

    assert (outcome.lifecycle, outcome.sqlstate, outcome.message) == ("Failed", code, "x")
    assert outcome.reason == "StatementFailed"


async def test_nothing_is_added_to_what_a_server_says(target):
    outcome = await target.run("prepare p as select 1; prepare p as select 1")

    assert (outcome.sqlstate, outcome.hint) == ("42P05", None)


@pytest.mark.parametrize("encoding", ["koi8r", "win1251", "iso_8859_5"])
async def test_a_script_is_sent_in_the_encoding_that_it_chose(target, encoding):
    outcome = await target.run(f"set client_encoding = '{encoding}'; select 'ж' = U&'\\0436'")

    assert outcome.results[-1]["rows"] == [[True]]


async def test_what_an_encoding_does_not_have_is_refused_before_it_is_sent(target):
    first = await target.lend()
    target.sessions.give_back(first)
    outcome = await target.run(
        "set client_encoding = 'latin1'; insert into t values (1); select '€'"
    )
    second = await target.lend()

    assert (outcome.lifecycle, outcome.reason) == ("Failed", "StatementFailed")
    assert "client_encoding" in outcome.message
    assert second is first
    assert await target.value("select count(*) from t") == 0
    target.sessions.give_back(second)
