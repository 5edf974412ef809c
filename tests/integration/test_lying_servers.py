"""A server that lies about its answers fails the attempt, in words; nothing breaks down inside Muster."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.model.reasons import END
from engine.pgwire.results import MAX_SKIPPED_BYTES
from engine.model.server import TargetServer
from muster.core.pinned_transport import MESSAGE_LIMIT
from tests.support.attempts import IDENTITY, TargetDatabase, a_target_database, a_step
from tests.support.tcp_proxy import HOST

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path, max_connections=100) as made:
        await made.execute(f"set role {made.owner.name}; create table t (n int)")
        await made.run("insert into t values (0)", guard=True)
        yield made


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", 4 + len(body)) + body


def row(*values: bytes) -> bytes:
    body = b"".join(struct.pack("!i", len(value)) + value for value in values)
    return message(b"D", struct.pack("!H", len(values)) + body)


def column(name: bytes, oid: int = 23) -> bytes:
    return name + b"\0" + struct.pack("!ihihih", 0, 0, oid, 4, -1, 0)


def ready(status: bytes = b"T") -> bytes:
    return message(b"Z", status)


BEGUN = message(b"C", b"BEGIN\0")
SET = message(b"C", b"SET\0")
NAMED = message(b"T", b"\0\1" + column(b"a"))
ONE = NAMED + row(b"1") + message(b"C", b"SELECT 1\0")
TEXT = message(b"T", b"\0\1" + column(b"a", 25))
LIES = {
    "nothing": ready(),
    "nothing, and no transaction": ready(b"I"),
    "a status that there is not": ready(b"?"),
    "a readiness without a status": ready(b""),
    "too few answers": BEGUN + SET + ready(),
    "no rows": BEGUN + SET * 30 + NAMED + message(b"C", b"SELECT 0\0") + ready(),
    "rows without columns": BEGUN + SET * 30 + message(b"T", b"\0\0") + row() + SET + ready(),
    "a text for a number": BEGUN + SET * 30 + TEXT + row(b"x" * 999) + SET + ready(),
    "a row that is cut": BEGUN + SET * 30 + NAMED + message(b"D", b"\0\1\0\0\xff\xff1") + SET + ready(),
    "a row before its columns": BEGUN + SET * 30 + row(b"1", b"2") + SET + ready(),
    "more columns than are told": message(b"T", b"\xff\xff") + ready(),
    "a tag without an end": BEGUN + SET * 30 + message(b"C", b"") + ready(),
    "a count without measure": SET * 31 + ONE + message(b"C", b"SELECT " + b"9" * 18 + b"\0") * 99 + ready(),
    "an error without fields": message(b"E", b"") + ready(b"E"),
    "an error with a code that is none": message(b"E", b"C" + b"x" * 9000 + b"\0Mno\0\0") + ready(b"E"),
    "an error at a place that is none": message(b"E", b"C42601\0Mno\0P99999999999\0\0") + ready(b"I"),
    "two errors": message(b"E", b"C42601\0\0") * 2 + ready(b"E"),
    "messages of others": message(b"R", b"\0\0\0\3") + message(b"v", b"") + message(b"?", b"x") + ready(),
    "a message without a size": b"D\0\0\0\0" + ready(),
    "a parameter without a value": message(b"S", b"client_encoding") + message(b"S", b"") + ready(),
    "two readinesses": ready() + ready(b"I"),
}  # fmt: skip
SCRIPTS = {
    "one transaction": {"script": "insert into t values (1)"},
    "several statements": {"script": "insert into t values (1); select n from t"},
    "guarded": {"script": "insert into t values (1)", "guard": True},
    "read only": {"script": "select n from t", "settings": {"access": "readOnly"}},
    "by itself": {"script": "vacuum t"},
    "an index": {"script": "create index concurrently on t (n)"},
    "each by itself": {"script": "select 1; select 2", "transaction": "none"},
    "with a parameter": {"script": "select 1", "settings": {"parameters": {"no_such_thing": "1"}}},
}


@contextlib.asynccontextmanager
async def liar(
    target: TargetDatabase, answer: bytes, *, after: int = 0, repeat: int = 1
) -> AsyncIterator[TargetServer]:
    """The real server until the attempt, whose messages after the first so many are answered with this."""
    talks: set[asyncio.Task[None]] = set()
    opening = asyncio.Lock()  # held while a connection is opened: then nothing is cancelled

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with opening:
            there_reader, there_writer = await asyncio.open_connection(HOST, target.targets.port)
        down = asyncio.create_task(pump(there_reader, writer))
        left, lies = after, False
        try:
            while data := await reader.read(65_536):
                lies = lies or b"muster_guard" in data or b"set " in data or b"unknown" in data
                if lies and left <= 0:
                    down.cancel()
                    for _ in range(repeat):
                        writer.write(answer)
                        await writer.drain()
                else:
                    left -= lies
                    there_writer.write(data)
        except OSError:
            pass
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
            writer.close()  # as the server did, after a request to cancel

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(serve(reader, writer))
        talks.add(talk)
        talk.add_done_callback(talks.discard)

    listener = await asyncio.start_server(begin, HOST, 0)
    try:
        yield replace(target.server, port=listener.sockets[0].getsockname()[1])
    finally:
        listener.close()
        async with opening:
            for talk in talks:
                talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


def assert_told(outcome) -> None:
    """A liar may also claim success; whatever it is, it is an end that people can read about."""
    assert outcome is not None
    assert outcome.reason != "InternalError"
    assert outcome.reason is None or outcome.reason in END
    assert outcome.rows < 2**63
    assert outcome.sqlstate is None or len(outcome.sqlstate) == 5


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_an_end_that_has_a_name(target, lie):
    for after in (0, 1):
        async with liar(target, LIES[lie], after=after) as server:
            for how in SCRIPTS.values():
                who = target.who(credential_id=uuid4())  # nobody waits for the session of another
                assert_told(await target.run(server=server, who=who, within=1, **how))


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_to_a_batch_is_an_end_that_has_a_name(target, lie):
    async with liar(target, LIES[lie]) as server:
        session = await target.sessions.lend(
            server, target.database, target.who(), IDENTITY, direct=False,
            deadline=asyncio.get_running_loop().time() + 10,
        )  # fmt: skip
        outcomes = await target.run_batch(
            "select n from t", [target.task(), target.task()], session=session, within=3.0
        )

    for outcome in outcomes:
        assert_told(outcome)


ANY = st.lists(
    st.builds(
        message, st.sampled_from([*map(bytes, zip(b"TDCENSZGHWdcR1It"))]), st.binary(max_size=40)
    ),
    max_size=8,
).map(b"".join)


@given(ANY)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_any_answer_is_an_end_that_has_a_name(target, answer):
    async with liar(target, answer + ready()) as server:
        outcome = await target.run("insert into t values (1)", server=server, within=2)

    assert_told(outcome)


@pytest.mark.parametrize(
    "flood",
    [
        message(b"S", b"TimeZone\0" + b"x" * 60_000),
        message(b"N", b"SNOTICE\0Mx\0\0") * 3000,
        row(b"x" * 60_000),
    ],
    ids=["parameters", "notices", "rows"],
)
async def test_a_flood_in_answer_to_the_set_up_ends_the_attempt(target, flood):
    async with liar(target, flood, repeat=MAX_SKIPPED_BYTES * 100 // len(flood)) as server:
        outcome = await target.run("insert into t values (1)", server=server, within=30)

    assert (outcome.lifecycle, outcome.reason) == ("Failed", "ResultTooLarge")


async def test_one_value_that_is_too_large_is_called_so(target):
    outcome = await target.run(f"select repeat('x', {MESSAGE_LIMIT + 1000})")

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", "ResultTooLarge", False)


async def test_a_name_can_not_end_the_comment_that_it_stands_in(target):
    """A NUL is left out of what is sent: what it kept apart comes together."""
    step = replace(a_step("select 1"), job_name="x *\0/ ; create table hit (); /\0*")

    outcome = await target.run(step)

    assert outcome.lifecycle == "Succeeded", outcome
    assert await target.value("select to_regclass('hit') is null")
