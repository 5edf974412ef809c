"""The result reader: however a server's reply is divided into packets, and whatever it contains."""

import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.pgwire import result_sink, results
from engine.pgwire.result_set import digest
from engine.pgwire.result_sink import KEPT_ROWS
from engine.pgwire.results import ResultReader
from muster.core import pinned_transport
from muster.core.pinned_transport import MESSAGE_LIMIT, OPENING_LIMIT, Guard


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", 4 + len(body)) + body


def description(*columns: tuple[str, int]) -> bytes:
    parts = [
        name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, oid, -1, -1, 0)
        for name, oid in columns
    ]
    return message(b"T", struct.pack("!h", len(columns)) + b"".join(parts))


def row(*values: bytes | None) -> bytes:
    parts = [
        struct.pack("!i", -1) if value is None else struct.pack("!i", len(value)) + value
        for value in values
    ]
    return message(b"D", struct.pack("!h", len(values)) + b"".join(parts))


def complete(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


def notice(**fields: str) -> bytes:
    return message(
        b"N", b"".join(k.encode() + v.encode() + b"\0" for k, v in fields.items()) + b"\0"
    )


READY = message(b"Z", b"T")


def listening() -> ResultReader:
    reader = ResultReader()
    reader.begin_query(listening=True)
    return reader


ANSWER = b"".join(
    (
        message(b"S", b"application_name\0x\0"),
        description(("a", 23), ("b", 25)),
        row(b"1", b"one"),
        row(None, "zwei ü".encode()),
        complete("SELECT 2"),
        notice(S="HINWEIS", V="NOTICE", C="00000", M="hello", H="there"),
        complete("CREATE TABLE"),
        message(b"I", b""),
        READY,
    )
)


@given(st.lists(st.integers(0, len(ANSWER)), max_size=12))
def test_an_answer_is_the_same_however_it_is_cut(cuts):
    reader = listening()
    edges = [0, *sorted(cuts), len(ANSWER)]
    for start, end in zip(edges, edges[1:], strict=False):
        if start < end:
            reader.feed(ANSWER[start:end])

    first, second = reader.sets
    assert (first.columns, first.rows) == ([("a", 23), ("b", 25)], [[1, "one"], [None, "zwei ü"]])
    assert (first.tag, first.affected, second.tag, second.affected) == (
        "SELECT 2",
        2,
        "CREATE TABLE",
        0,
    )
    assert reader.notices == [
        {"severity": "NOTICE", "sqlstate": "00000", "message": "hello", "hint": "there"}
    ]
    assert reader.received == len(ANSWER)


@given(st.lists(st.integers(0, 3 * len(complete("SET")) + len(ANSWER)), max_size=6))
def test_what_the_first_statements_answer_is_passed_over(cuts):
    said = (
        complete("BEGIN")
        + complete("SET")
        + description(("l", 23))
        + row(b"1")
        + complete("SELECT 1")
    )
    said += ANSWER
    reader = ResultReader()
    reader.begin_query(listening=True, skip=3)
    edges = [0, *sorted(cuts), len(said)]
    for start, end in zip(edges, edges[1:], strict=False):
        if start < end:
            reader.feed(said[start:end])

    assert [each.tag for each in reader.sets] == ["SELECT 2", "CREATE TABLE"]
    assert reader.skipping == 0


def test_an_error_among_the_first_statements_can_be_told():
    reader = ResultReader()
    reader.begin_query(listening=True, skip=3)
    reader.feed(complete("BEGIN") + message(b"E", b"SERROR\0C22012\0\0") + READY)

    assert (reader.skipping, reader.sets) == (2, [])


@given(st.binary(max_size=400))
def test_nonsense_is_survived(data):
    reader = listening()
    reader.feed(data)
    reader.feed(READY)

    document = msgspec.json.encode([each.as_json({}, KEPT_ROWS) for each in reader.sets])
    assert len(msgspec.json.decode(document)) == len(reader.sets)


@given(st.sampled_from([b"T", b"D", b"C", b"N", b"d"]), st.binary(max_size=100))
def test_messages_that_lie_are_survived(kind, body):
    reader = listening()
    reader.feed(
        description(("a", 23), ("b", 16), ("c", 701)) + message(kind, body) + complete("SELECT 1")
    )

    said = msgspec.json.encode(
        [each.as_json({}, KEPT_ROWS) for each in reader.sets] + reader.notices
    )
    assert b"\\u0000" not in said


@pytest.mark.parametrize(
    ("oid", "text", "value"),
    [
        (16, b"t", True),
        (16, b"f", False),
        (16, b"maybe", "maybe"),
        (23, b"-7", -7),
        (20, b"9223372036854775808", "9223372036854775808"),
        (20, b"9" * 5000, "9" * 5000),
        (23, b"0x1", "0x1"),
        (701, b"1.5", 1.5),
        (701, b"-Infinity", "-Infinity"),
        (701, b"nonsense", "nonsense"),
        (25, b"a\0b", "ab"),
        (25, b"\xff", "\ufffd"),
        (1700, b"1.10", "1.10"),
    ],
)
def test_values(oid, text, value):
    reader = listening()
    reader.feed(description(("a", oid)) + row(text) + complete("SELECT 1"))

    assert reader.sets[0].rows == [[value]]


def test_rows_are_counted_when_they_are_no_longer_kept(monkeypatch):
    monkeypatch.setattr(result_sink, "KEPT_ROWS", 2)
    reader = listening()
    reader.feed(description(("a", 23)) + row(b"1") * 5 + complete("SELECT 5"))

    assert reader.sets[0].as_json({}, KEPT_ROWS) == {
        "statement": 0, "tag": "SELECT 5", "columns": [{"name": "a", "type": "integer"}],
        "rows": [[1], [1]], "rowCount": 5, "truncated": True,
    }  # fmt: skip


def test_what_is_cut_stays_cut(monkeypatch):
    monkeypatch.setattr(result_sink, "KEPT_BYTES", 100)
    reader = listening()
    reader.feed(
        description(("a", 25)) + row(b"1") + row(b"x" * 200) + row(b"2") + complete("SELECT 3")
    )

    assert (reader.sets[0].rows, reader.sets[0].truncated) == ([["1"]], True)


class Broken:
    """A dialer that remembers why it was broken off."""

    refusal = None
    trusted = False
    proven = False
    key = b""

    def hang_up(self):
        pass


def test_a_flood_is_broken_off(monkeypatch):
    monkeypatch.setattr(results, "MAX_ROWS", 3)
    reader = listening()
    reader.dialer = dialer = Broken()
    reader.feed(description(("a", 23)) + row(b"1") * 3)
    assert not reader.limit_exceeded and dialer.refusal is None

    reader.feed(row(b"1"))
    assert reader.limit_exceeded and "more than can be received" in dialer.refusal


def test_each_statement_has_its_own_flood(monkeypatch):
    monkeypatch.setattr(results, "MAX_ROWS", 3)
    reader = listening()
    reader.dialer = Broken()
    for _ in range(4):
        reader.feed(description(("a", 23)) + row(b"1") * 3 + complete("SELECT 3"))

    assert not reader.limit_exceeded


def test_a_question_for_data_is_broken_off():
    reader = listening()
    reader.dialer = dialer = Broken()
    reader.feed(message(b"G", b"\0\0\0"))

    assert reader.copy_in_requested and "copy" in dialer.refusal


def test_data_that_is_copied_out_counts_as_a_flood(monkeypatch):
    monkeypatch.setattr(results, "MAX_BYTES", 1000)
    reader = listening()
    reader.dialer = Broken()
    reader.feed(message(b"H", b"\0\0\0") + message(b"d", b"x" * 600) * 2)

    assert reader.limit_exceeded


def test_a_hash_tells_rows_apart_and_not_how_they_were_cut():
    def of(*parts):
        reader = listening()
        reader.feed(b"".join(parts))
        return digest(reader.sets)

    one = of(description(("a", 23)), row(b"1"), complete("SELECT 1"))
    assert one == of(description(("a", 20)), row(b"1"), complete("SELECT 1"))
    assert one != of(description(("b", 23)), row(b"1"), complete("SELECT 1"))
    assert one != of(description(("a", 23)), row(b"2"), complete("SELECT 1"))
    assert of(complete("UPDATE 1")) != of(complete("UPDATE 2"))


class Sink:
    """asyncpg, as far as a guard needs it."""

    def __init__(self):
        self.heard = b""
        self.lost = False

    def connection_made(self, _):
        """It may speak."""

    def data_received(self, data):
        self.heard += data

    def connection_lost(self, _):
        self.lost = True


def test_a_line_is_handed_over_between_two_messages_only():
    reader, sink = ResultReader(), Sink()
    guard = Guard(sink, Broken(), reader)
    hello = message(b"R", struct.pack("!i", 0))
    guard.data_received(hello)
    for part in (READY[:3], READY[3:5]):
        guard.data_received(part)
        with pytest.raises(ConnectionError, match="not asked for"):
            guard.hand_over()
    guard.data_received(READY[5:])
    guard.hand_over()
    ended = []
    reader.answered = lambda: ended.append(reader.status)
    reader.hung_up = lambda: ended.append("gone")
    guard.data_received(complete("SET") + READY)
    guard.connection_lost(None)

    assert sink.heard == hello + READY
    assert sink.lost
    assert (reader.tag, ended) == (b"SET", [ord("T"), "gone"])


def test_what_the_session_is_like_is_learned_while_nobody_listens():
    reader = ResultReader()
    for name, value in (("standard_conforming_strings", "off"), ("client_encoding", "WIN1252")):
        reader.feed(message(b"S", f"{name}\0{value}\0".encode()))
    assert (reader.standard_strings, reader.encoding) == (False, "cp1252")

    reader.feed(message(b"S", b"client_encoding\0MULE_INTERNAL\0") + message(b"S", b""))
    assert reader.encoding == "ascii"


@pytest.mark.parametrize("size", [0, 3])
def test_a_message_without_a_size_ends_the_session(size):
    reader = listening()
    reader.dialer = Broken()
    reader.feed(b"D" + struct.pack("!I", size) + b"x")

    assert "does not speak PostgreSQL's protocol" in reader.dialer.refusal
    assert not reader.limit_exceeded


@pytest.mark.parametrize("size", [MESSAGE_LIMIT + 1, 2**32 - 1])
def test_one_value_that_is_too_large_is_a_flood(size):
    reader = listening()
    reader.dialer = Broken()
    reader.feed(description(("a", 25)) + b"D" + struct.pack("!I", size) + b"x")

    assert reader.limit_exceeded
    assert reader.dialer.refusal


@pytest.mark.parametrize(
    "flood",
    [message(b"S", b"TimeZone\0" + b"x" * 1000), notice(M="x" * 1000), row(b"x" * 1000)],
    ids=["parameters", "notices", "rows"],
)
@pytest.mark.parametrize(
    "turn", [{"listening": True, "skip": 3}, {"listening": False}], ids=["before a script", "ours"]
)
def test_a_flood_in_answer_to_what_we_say_ourselves_is_broken_off(flood, turn):
    reader = ResultReader()
    reader.dialer = Broken()
    reader.begin_query(**turn)
    sent = 0
    while not reader.limit_exceeded:
        reader.feed(flood * 10)
        sent += len(flood) * 10

    assert sent <= results.MAX_SKIPPED_BYTES + len(flood) * 10


def test_answers_to_many_questions_of_our_own_are_no_flood():
    reader = ResultReader()
    reader.begin_query(listening=False)
    for _ in range(200):
        reader.feed(message(b"S", b"x\0" + b"y" * 10_000) + complete("SET") + READY)

    assert not reader.limit_exceeded


def test_a_tag_is_cut():
    reader = listening()
    reader.feed(complete("x" * 100_000) + READY)

    assert len(reader.sets[0].tag) == results.MAX_TAG_LENGTH


def guarded():
    """A guard that has accepted the login, and what it hears with."""
    dialer = Broken()
    guard = Guard(Sink(), dialer)
    guard.connection_made(Transport())
    guard.data_received(message(b"R", struct.pack("!i", 0)))
    return guard, dialer


class Transport:
    def abort(self):
        """It hears nothing more."""


def test_a_flood_before_a_session_begins_is_broken_off():
    guard, dialer = guarded()
    status = message(b"S", b"x\0" + b"y" * 10_000)
    sent = 0
    while not dialer.refusal:
        guard.data_received(status)
        sent += len(status)

    assert sent <= OPENING_LIMIT + len(status)


def test_an_answer_without_end_is_broken_off_where_asyncpg_collects_it(monkeypatch):
    monkeypatch.setattr(pinned_transport, "ANSWER_LIMIT", 100_000)
    guard, dialer = guarded()
    for _ in range(20):
        guard.data_received(READY + row(b"x" * 10_000) * 5)
    assert not dialer.refusal

    guard.data_received(row(b"x" * 10_000) * 11)

    assert dialer.refusal


def test_a_server_that_lies_about_its_columns_is_left():
    few = description(*(("c", 23) for _ in range(3)))
    for said, why in (
        (few + message(b"D", b"\0\3"), "a row without its columns"),
        (message(b"T", struct.pack("!H", 1665)), "more columns than there can be"),
    ):
        reader = listening()
        reader.dialer = Broken()
        reader.feed(said + row(b"1", b"2", b"3") + READY)
        assert why in reader.dialer.refusal
        assert reader.sets == []


def test_answers_without_end_are_a_flood(monkeypatch):
    monkeypatch.setattr(results, "MAX_RESULT_SETS", 3)
    reader = listening()
    reader.dialer = Broken()
    over = []
    reader.answered = lambda: over.append(1)
    reader.feed(complete("SET") * 10 + READY)

    assert reader.limit_exceeded
    assert (len(reader.sets), over) == (4, [])


def test_large_descriptions_are_not_kept():
    reader = listening()
    for number in range(3):
        reader.feed(description((f"{number}" * 5000, 23)) + complete("SELECT 0"))
    reader.feed(description(("small", 23)) + complete("SELECT 0"))

    assert len(reader._descriptions) == 1


def test_an_error_without_words_is_an_error():
    reader = listening()
    failures = []
    reader.answered = lambda: failures.append(reader.failure)
    reader.feed(message(b"E", b"\0") + READY)

    assert failures == [{}]


async def test_a_key_that_comes_in_pieces_is_whole():
    key = message(b"K", struct.pack("!ii", 77, 88))
    for cut in range(1, len(key)):
        dialer = Broken()
        guard = Guard(Sink(), dialer)
        guard.data_received(message(b"R", struct.pack("!i", 0)))
        guard.data_received(key[:cut])
        guard.data_received(key[cut:] + READY)

        assert dialer.key == struct.pack("!ii", 77, 88)


def test_notices_after_one_that_is_not_kept_are_counted_without_being_read(monkeypatch):
    reader = listening()
    reader.feed(notice(M="kept") + notice(M="x" * results.MAX_NOTICE_BYTES * 2) * 8)
    reader.feed(notice(M="y" * 8000) * 8)
    monkeypatch.setattr(results, "fields", None)

    reader.feed(notice(M="small") * 5 + READY)

    said = [each["message"] for each in reader.all_notices()]
    assert (said[0], said[-1]) == ("kept", f"{22 - (len(said) - 1)} more not kept.")
