"""Hears what a target answers and keeps it within bounds: result sets, tags, notices.

Statements go by the simple protocol, and what it answers is taken from the wire as text. So a statement costs
one round trip, no type has to be known, and a flood ends before it fills memory.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import asyncpg
from msgspec import Struct

from engine.pgwire.parser import MessageParser, fields, text

MOST_ROWS, MOST_BYTES = 100_000, 64 * 1024 * 1024  # of one statement; more ends the attempt
MOST_SETS = 100_000  # of one message; more ends the attempt
MOST_UNHEARD = 1024 * 1024  # bytes in answer to what we say ourselves, as before a script
LONGEST_TAG = 64  # bytes
MOST_COLUMNS = 1664  # that PostgreSQL itself can return
KEPT_ROWS, KEPT_BYTES = 1_000, 1024 * 1024  # of one result set
KEPT_IN_ALL = 4 * 1024 * 1024
KEPT_SETS = 1_000
KEPT_SHAPES, LARGEST_SHAPE = 50, 4 * 1024  # bytes
NOTICES, NOTICED_BYTES = 100, 64 * 1024

DESCRIPTION, ROW, COMPLETE, NOTICE, COPY_DATA = b"TDCNd"
COPY_ASKED = b"GW"
COMPLETED = b"C\0\0\0"
HEARD = frozenset((DESCRIPTION, ROW, COMPLETE, NOTICE, COPY_DATA, *COPY_ASKED))
# What a row of settings and the look behind it are answered with, which is most of what most sessions hear:
# taken in one leap. Where it does not fit, only time is lost.
SETTINGS = re.compile(
    rb"(?:C\0\0\0\x0aBEGIN\0)?(?:C\0\0\0\x08SET\0)+"
    rb"(?:T\0\0\0!\0\x01\?column\?\0\0{6}\0\0\0\x17\0\x04\xff{4}\0\0D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0)?"
).match

TYPES = {
    16: "boolean", 17: "bytea", 18: '"char"', 19: "name", 20: "bigint", 21: "smallint", 23: "integer",
    25: "text", 26: "oid", 114: "json", 142: "xml", 600: "point", 700: "real", 701: "double precision",
    790: "money", 829: "macaddr", 869: "inet", 650: "cidr", 1000: "boolean[]", 1005: "smallint[]",
    1007: "integer[]", 1009: "text[]", 1016: "bigint[]", 1042: "character", 1043: "character varying",
    1082: "date", 1083: "time without time zone", 1114: "timestamp without time zone",
    1184: "timestamp with time zone", 1186: "interval", 1266: "time with time zone", 1560: "bit",
    1562: "bit varying", 1700: "numeric", 2205: "regclass", 2206: "regtype", 2249: "record",
    2278: "void", 2950: "uuid", 2951: "uuid[]", 3220: "pg_lsn", 3614: "tsvector", 3615: "tsquery",
    3802: "jsonb", 5069: "xid8",
}  # fmt: skip


class ResultSet(Struct):
    """What one statement returned."""

    columns: list[tuple[str, int]] | None = None  # names and types
    rows: list[list[Any]] = []
    tag: str = ""
    count: int = 0
    truncated: bool = False
    size: int = 0  # bytes received
    foreign: frozenset[int] = frozenset()  # types whose names have to be asked for
    statement: int = 0
    readers: list[Callable[[bytes], Any]] = []
    digest: Any = None

    @property
    def touched(self) -> int:
        """Returned or changed, as the tag counts them."""
        last = self.tag.rpartition(" ")[2]
        return int(last) if last.isdecimal() and len(last) < 19 else 0

    def told(self, types: Mapping[int, str], most: int = KEPT_ROWS) -> dict[str, Any]:
        """With so many of its rows at most."""
        said: dict[str, Any] = {"statement": self.statement, "tag": self.tag}
        if self.columns is not None:
            said["columns"] = [
                {"name": name, "type": types.get(oid) or TYPES.get(oid) or f"oid {oid}"}
                for name, oid in self.columns
            ]
            cut = self.truncated or len(self.rows) > most
            said |= {"rows": self.rows[:most], "rowCount": self.count, "truncated": cut}
        return said


class ResultReader(MessageParser):
    def __init__(self) -> None:
        super().__init__()
        self._shapes: dict[bytes, Shape] = {}
        self.tag = b""  # the last one that was heard while not listening
        self.reset()

    def reset(self) -> None:
        """A new attempt begins."""
        self.received = 0
        self.notices: list[dict[str, str]] = []
        self.flooded = self.asked_for_data = False
        self._kept = self._noticed = self._unheard = 0
        self.turn(listening=False)

    def turn(self, *, listening: bool, skip: int = 0) -> None:
        """A new message is sent; what its first statements answer is not kept, or all is not."""
        self.sets: list[ResultSet] = []
        self._open: ResultSet | None = None
        self.skipping = skip  # statements
        self._passed_over = 0  # bytes
        self.listening = listening

    def said(self) -> list[dict[str, str]]:
        """The notices, and how many there were beyond."""
        if not self._unheard:
            return self.notices
        return [*self.notices, {"severity": "INFO", "message": f"{self._unheard} more not kept."}]

    def count(self, size: int) -> None:
        if self.listening:
            self.received += size
        if self.skipping or not self.listening:
            self._passed_over += size
            if self._passed_over > MOST_UNHEARD:
                self._flood()

    def too_large(self) -> None:
        self._flood()

    def leap(self, data: bytes, at: int) -> int:
        if self.skipping and (settings := SETTINGS(data, at)):
            number = settings[0].count(COMPLETED)
            if number <= self.skipping:
                self.skipping -= number
                return settings.end()
        return at

    def hear(self, kind: int, data: bytes, start: int, end: int) -> None:
        if not self.listening:
            if kind == COMPLETE:
                self.tag = data[start : end - 1][:LONGEST_TAG]
        elif self.skipping:
            if kind == COMPLETE:
                self.skipping -= 1
        elif kind in HEARD:
            self._keep(kind, data[start:end])

    def ready(self) -> None:
        self.listening = False
        self._passed_over = 0
        self.answered()

    def _keep(self, kind: int, body: bytes) -> None:
        if kind == ROW:
            self._row(body)
        elif kind == DESCRIPTION:
            self._describe(body)
        elif kind == COMPLETE:
            self._complete(body)
        elif kind == NOTICE:
            self._note(fields(body))
        elif kind == COPY_DATA:
            self._bears(len(body))
        else:
            self.asked_for_data = True
            self.break_off("it asks for data to copy, and nobody has any")

    def _complete(self, body: bytes) -> None:
        found, self._open = self._open or ResultSet(), None
        found.tag = text(body[:-1][:LONGEST_TAG])
        self.sets.append(found)
        if len(self.sets) > MOST_SETS:
            self._flood()

    def _flood(self) -> None:
        self.flooded = True
        self.break_off("it returned more than can be received")

    def _bears(self, size: int) -> ResultSet | None:
        """Counts it; None when it was too much."""
        found = self._open
        if found is None:
            found = self._open = ResultSet()
        found.count += 1
        found.size += size
        if found.count <= MOST_ROWS and found.size <= MOST_BYTES:
            return found
        self._flood()
        return None

    def _describe(self, body: bytes) -> None:
        shape = self._shapes.get(body)
        if shape is None:
            if int.from_bytes(body[:2], "big") > MOST_COLUMNS:
                self.break_off("it returned more columns than there can be")
                return
            shape = Shape.of(body)
            if len(self._shapes) >= KEPT_SHAPES:
                self._shapes.clear()
            if len(body) <= LARGEST_SHAPE:
                self._shapes[body] = shape
        self._kept += len(body)
        truncated = self._kept > KEPT_IN_ALL
        self._open = ResultSet(
            columns=[] if truncated else shape.columns,
            readers=shape.readers,
            foreign=shape.foreign,
            truncated=truncated,
            digest=sha256(shape.names),
        )

    def _row(self, body: bytes) -> None:
        size = len(body)
        found = self._bears(size)
        if found is None or found.digest is None:
            return
        if size < 2 + 4 * len(found.readers):
            self.break_off("it sent a row without its columns")
            return
        found.digest.update(body)
        if not found.truncated:
            if (
                found.count > KEPT_ROWS
                or found.size > KEPT_BYTES
                or self._kept + size > KEPT_IN_ALL
            ):
                found.truncated = True
                return
            self._kept += size
            found.rows.append(_values(body, found.readers))

    def _note(self, said: dict[str, str]) -> None:
        note = {name: said[code] for name, code in NOTE.items() if code in said}
        size = sum(map(len, note.values()))
        if len(self.notices) >= NOTICES or self._noticed + size > NOTICED_BYTES:
            self._unheard += 1
            return
        self._noticed += size
        self.notices.append(note)


@dataclass(frozen=True, slots=True)
class Shape:
    """Of rows; the same question has it again and again."""

    names: bytes
    columns: list[tuple[str, int]]
    readers: list[Callable[[bytes], Any]]
    foreign: frozenset[int]

    @classmethod
    def of(cls, body: bytes) -> "Shape":
        columns, names, at = [], [body[:2]], 2
        for _ in range(int.from_bytes(body[:2], "big")):
            end = body.find(b"\0", at)
            if end < 0:
                break
            names.append(body[at : end + 1])
            columns.append((text(body[at:end]), int.from_bytes(body[end + 7 : end + 11], "big")))
            at = end + 19
        oids = [oid for _, oid in columns]
        readers = [READERS.get(oid, text) for oid in oids]
        return cls(b"".join(names), columns, readers, frozenset(oids) - TYPES.keys())


NOTE = {
    "severity": "V", "sqlstate": "C", "message": "M", "detail": "D", "hint": "H", "context": "W",
}  # fmt: skip


class UnexpectedAnswer(asyncpg.InterfaceError):
    """To a question of ours; no server that is honest answers so."""


def rows_of(
    sets: Sequence[ResultSet], at: int = 0, *, width: int = 1, least: int = 0
) -> list[list[Any]]:
    """The rows of that answer, each with so many values, and so many of them at least."""
    if not -len(sets) <= at < len(sets):
        raise UnexpectedAnswer("a question was not answered")
    rows = sets[at].rows
    if len(rows) < least or any(len(row) < width for row in rows):
        raise UnexpectedAnswer("an answer does not have the rows that were asked for")
    return rows


def digest(sets: list[ResultSet]) -> str:
    """Of all rows, also of those that were not kept: equal results are equal."""
    whole = sha256()
    for each in sets:
        whole.update(each.digest.digest() if each.digest else each.tag.encode())
    return whole.hexdigest()


def _values(body: bytes, readers: list[Callable[[bytes], Any]]) -> list[Any]:
    row: list[Any] = []
    at = 2
    for read in readers:
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        if size < 0:
            row.append(None)
            continue
        row.append(read(body[at : at + size]))
        at += size
    return row


def _truth(value: bytes) -> Any:
    return {b"t": True, b"f": False}.get(value, text(value))


def _integer(value: bytes) -> Any:
    try:
        number = int(value[:20])
    except ValueError:
        return text(value)
    return number if -(2**63) <= number < 2**63 else text(value)


def _real(value: bytes) -> Any:
    try:
        number = float(value[:40])
    except ValueError:
        return text(value)
    return number if number - number == 0 else text(value)


READERS: dict[int, Callable[[bytes], Any]] = {
    16: _truth, 20: _integer, 21: _integer, 23: _integer, 26: _integer, 700: _real, 701: _real,
}  # fmt: skip
