"""Rows on the host's disk: what is written is what is read, and what is incomplete counts as lost."""

import struct
from datetime import date
from uuid import uuid4

import pytest

from engine.attempt.row_spool import RowSpool, SpoolFolder, SpoolLost, SpoolReader, copy_line
from engine.pgwire.results import ResultReader
from tests.support.attempts import a_task

MIB = 1024 * 1024


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def row(*values):
    parts = [struct.pack("!H", len(values))]
    for value in values:
        parts.append(struct.pack("!i", -1 if value is None else len(value)) + (value or b""))
    return b"".join(parts)


def description(*names, oid=25):
    columns = [
        name.encode() + b"\0" + struct.pack("!IHIhiH", 0, 0, oid, -1, -1, 0) for name in names
    ]
    return message(b"T", struct.pack("!H", len(names)) + b"".join(columns))


def a_result(*rows, names=("a", "b")):
    rows = b"".join(message(b"D", row(*each)) for each in rows)
    return description(*names) + rows + message(b"C", b"SELECT\0")


@pytest.fixture
def folder(tmp_path):
    return SpoolFolder(tmp_path / "spool", 64 * MIB)


def a_spool(folder, reader, task=None):
    spool = RowSpool(folder, folder.path(task or a_task(), 1))
    reader.begin_query(listening=True)
    spool.attach(reader)
    return spool


def lines(path, prefix=b"id"):
    reader = SpoolReader(path)
    try:
        return b"".join(reader.chunks(prefix)).splitlines(), reader
    finally:
        reader.close()


def test_the_rows_of_the_first_result_set_are_kept(folder):
    reader = ResultReader()
    spool = a_spool(folder, reader)

    reader.feed(a_result((b"1", None), (b"x", b"")) + a_result((b"2",), names=("c",)))
    spool.detach()

    assert spool.complete() is None
    read, source = lines(spool.path)
    assert read == [b"id\t1\t\\N", b"id\tx\t"]
    assert (source.header.columns, source.rows) == ([("a", 25), ("b", 25)], 2)
    assert [each.count for each in reader.sets] == [2, 1], "the attempt has its results too"
    assert oct(spool.path.stat().st_mode)[-3:] == "600"


def test_a_value_is_escaped_as_copy_wants_it():
    line = copy_line(b"id", row(b"a\\b\tc\nd\re", b"\\N", "ü".encode()))

    assert line == b"id\ta\\\\b\\tc\\nd\\re\t\\\\N\t" + "ü\n".encode()
    assert copy_line(b"id", row(b"\xfc"), "latin-1") == "id\tü\n".encode()
    assert copy_line(b"id", row()) == b"id\n"


def test_a_result_set_of_a_query_of_ours_is_not_kept(folder):
    reader = ResultReader()
    spool = a_spool(folder, reader)
    reader.feed(a_result((b"7",), names=("txid",)))
    spool.discard_result(reader.sets[-1])

    assert spool.complete() is None
    assert lines(spool.path)[1].header.columns is None


def test_more_rows_than_a_statement_may_return_are_kept(folder, monkeypatch):
    monkeypatch.setattr("engine.pgwire.results.MAX_ROWS", 2)
    reader = ResultReader()
    spool = a_spool(folder, reader)

    reader.feed(a_result(*((b"x", b"y"),) * 5) + a_result(*((b"x", b"y"),) * 2))
    assert not reader.limit_exceeded
    spool.complete()
    assert len(lines(spool.path)[0]) == 5
    reader.feed(a_result(*((b"x", b"y"),) * 3))
    assert reader.limit_exceeded, "a second result set has the common limit"
    spool.delete()


@pytest.mark.parametrize("cut", [1, 12, 16, 20, -200])
def test_a_file_that_is_incomplete_or_was_changed_counts_as_lost(folder, cut):
    reader = ResultReader()
    spool = a_spool(folder, reader)
    reader.feed(a_result(*((b"value", b"other"),) * 20))
    spool.complete()
    whole = spool.path.read_bytes()

    changed = whole[:-cut] if cut > 0 else whole[:cut] + b"!" + whole[cut + 1 :]
    spool.path.write_bytes(changed)

    with pytest.raises(SpoolLost):
        lines(spool.path)


def test_a_file_that_is_missing_or_empty_counts_as_lost(folder, tmp_path):
    with pytest.raises(SpoolLost):
        SpoolReader(tmp_path / "none")
    (tmp_path / "empty").touch()
    with pytest.raises(SpoolLost):
        SpoolReader(tmp_path / "empty")


def test_a_result_that_is_too_large_alone_is_not_retried(tmp_path):
    reader = ResultReader()
    spool = a_spool(SpoolFolder(tmp_path, MIB), reader)

    for _ in range(8):
        reader.feed(description("a") if spool.failure is None and not reader.received else b"")
        reader.feed(message(b"D", row(b"x" * 400_000)))

    assert spool.failure is not None
    assert (spool.failure.retry, "MUSTER_OUTPUT_SPOOL_SIZE" in spool.failure.message) == (
        False,
        True,
    )
    assert reader.broken_off
    assert spool.path.stat().st_size < 3 * MIB


def test_a_folder_that_others_filled_has_room_later(tmp_path):
    (tmp_path / "2025-01-01_x_1_1_1.rows").write_bytes(b"x" * MIB)
    reader = ResultReader()
    spool = a_spool(SpoolFolder(tmp_path, MIB), reader)

    reader.feed(a_result((b"1", b"2")))

    assert spool.failure is not None
    assert spool.failure.retry


def test_a_full_disk_is_named(folder, monkeypatch):
    monkeypatch.setattr(folder, "create", lambda _: open("/dev/full", "wb"))  # noqa: SIM115
    reader = ResultReader()
    spool = a_spool(folder, reader)
    reader.feed(a_result((b"1", b"2")))

    failure = spool.complete()

    assert failure is not None
    assert (failure.retry, "No space left on device" in failure.message) == (True, True)


def test_columns_with_the_same_name_are_refused(folder):
    reader = ResultReader()
    spool = a_spool(folder, reader)

    reader.feed(description("?column?", "?column?"))

    assert spool.failure is not None
    assert "several columns with the name '?column?'" in spool.failure.message
    assert not spool.failure.retry


def test_a_file_says_whose_rows_it_has(folder):
    task = a_task(run_day=date(2026, 2, 3), job_execution_id=uuid4(), step_id=4, ordinal=17)
    reader = ResultReader()
    spool = a_spool(folder, reader, task)
    spool.complete()

    (entry,) = folder.entries()

    assert entry == (spool.path, date(2026, 2, 3), task.job_execution_id, 4, 17)
    assert folder.used() == spool.path.stat().st_size
    spool.delete()
    assert folder.entries() == []
