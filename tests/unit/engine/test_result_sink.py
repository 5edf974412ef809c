"""Sinks: rows reach them as they arrive, and the default one keeps the first rows."""

import pytest

from engine.pgwire import result_sink
from engine.pgwire.result_set import ResultSet
from engine.pgwire.result_sink import FirstRows
from engine.pgwire.results import ResultReader
from tests.unit.engine.test_results import READY, complete, description, message, row


class Recorder:
    """A sink that keeps nothing in the result set."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def reset(self) -> None:
        self.events.append("reset")

    def begin(self, result: ResultSet, size: int) -> None:
        self.events.append([name for name, _ in result.columns])

    def row(self, result: ResultSet, body: bytes) -> None:
        self.events.append((result.count, body[6:]))


def reading(sink) -> ResultReader:
    reader = ResultReader(sink)
    reader.begin_query(listening=True)
    return reader


def test_a_sink_gets_each_row_when_it_arrives():
    sink = Recorder()
    reader = reading(sink)

    reader.feed(description(("a", 23)) + row(b"1"))
    assert sink.events == ["reset", ["a"], (1, b"1")]
    reader.feed(row(b"2") + complete("SELECT 2") + READY)

    assert sink.events[-1] == (2, b"2")
    (result,) = reader.sets
    assert (result.rows, result.count, result.tag, result.truncated) == ([], 2, "SELECT 2", False)


def test_a_sink_gets_more_rows_than_the_default_one_keeps(monkeypatch):
    monkeypatch.setattr(result_sink, "KEPT_ROWS", 2)
    sinks = Recorder(), FirstRows()
    for sink in sinks:
        reader = reading(sink)
        reader.feed(description(("a", 23)) + row(b"1") * 5 + complete("SELECT 5") + READY)

    assert len(sinks[0].events) == 7
    assert (reader.sets[0].rows, reader.sets[0].count) == ([[1], [1]], 5)
    assert reader.sets[0].truncated


def test_rows_that_are_skipped_or_malformed_do_not_reach_the_sink():
    sink = Recorder()
    reader = ResultReader(sink)
    reader.begin_query(listening=True, skip=1)

    reader.feed(description(("a", 23)) + row(b"1") + complete("SELECT 1"))
    reader.feed(description(("b", 23)) + message(b"D", b"\0\1"))

    assert sink.events == ["reset", ["b"]]
    assert reader.broken_off


@pytest.mark.parametrize("limit", ["KEPT_BYTES", "KEPT_BYTES_IN_ALL"])
def test_the_default_sink_keeps_a_limited_number_of_bytes(monkeypatch, limit):
    monkeypatch.setattr(result_sink, limit, 100)
    reader = reading(FirstRows())

    reader.feed(description(("a", 25)) + row(b"x" * 40) * 9 + complete("SELECT 9") + READY)

    (result,) = reader.sets
    assert (0 < len(result.rows) < 3, result.count, result.truncated) == (True, 9, True)


def test_a_reset_gives_the_default_sink_its_bytes_back(monkeypatch):
    monkeypatch.setattr(result_sink, "KEPT_BYTES_IN_ALL", 100)
    reader = reading(FirstRows())
    for _ in range(5):
        reader.reset()
        reader.begin_query(listening=True)
        reader.feed(description(("a", 25)) + row(b"x" * 40) + complete("SELECT 1") + READY)

        assert [len(result.rows) for result in reader.sets] == [1]
