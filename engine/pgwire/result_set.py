"""A result set: columns, rows, tag and counters of one statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from msgspec import Struct

from engine.pgwire.errors import UnexpectedAnswer
from engine.pgwire.parser import text

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
    columns: list[tuple[str, int]] | None = None  # names and types
    rows: list[list[Any]] = []  # those that the sink keeps
    tag: str = ""
    count: int = 0  # rows received
    truncated: bool = False
    size: int = 0  # bytes received
    unnamed_types: frozenset[int] = frozenset()  # that `TYPES` does not name
    statement: int = 0  # a number that the caller sets
    decoders: list[Callable[[bytes], Any]] = []  # of the columns
    digest: Any = None  # of all rows
    unlimited: bool = False  # its sink bounds it
    copied_out: bool = False  # COPY TO STDOUT: its rows were read

    @property
    def affected(self) -> int:
        """Rows that the statement returned or changed, by its tag."""
        number = self.tag.rpartition(" ")[2]
        return int(number) if number.isdecimal() and len(number) < 19 else 0

    def as_json(self, types: Mapping[int, str], max_rows: int) -> dict[str, Any]:
        document: dict[str, Any] = {"statement": self.statement, "tag": self.tag}
        if self.columns is not None:
            document["columns"] = [
                {"name": name, "type": types.get(oid) or TYPES.get(oid) or f"oid {oid}"}
                for name, oid in self.columns
            ]
            truncated = self.truncated or len(self.rows) > max_rows
            rows = self.rows[:max_rows]
            document |= {"rows": rows, "rowCount": self.count, "truncated": truncated}
        return document


@dataclass(frozen=True, slots=True)
class RowDescription:
    names: bytes
    columns: list[tuple[str, int]]
    decoders: list[Callable[[bytes], Any]]
    unnamed_types: frozenset[int]

    @classmethod
    def of(cls, body: bytes) -> "RowDescription":
        columns, names, at = [], [body[:2]], 2
        for _ in range(int.from_bytes(body[:2], "big")):
            end = body.find(b"\0", at)
            if end < 0:
                break
            names.append(body[at : end + 1])
            columns.append((text(body[at:end]), int.from_bytes(body[end + 7 : end + 11], "big")))
            at = end + 19
        oids = [oid for _, oid in columns]
        decoders = [DECODERS.get(oid, text) for oid in oids]
        return cls(b"".join(names), columns, decoders, frozenset(oids) - TYPES.keys())

    def result_set(self) -> ResultSet:
        return ResultSet(
            columns=self.columns,
            decoders=self.decoders,
            unnamed_types=self.unnamed_types,
            digest=sha256(self.names),
        )


def rows_of(
    sets: Sequence[ResultSet], at: int = 0, *, width: int = 1, least: int = 0
) -> list[list[Any]]:
    """The rows of that result set: at least so many, each with at least so many values."""
    if not -len(sets) <= at < len(sets):
        raise UnexpectedAnswer("a query was not answered")
    rows = sets[at].rows
    if len(rows) < least or any(len(row) < width for row in rows):
        raise UnexpectedAnswer("a reply does not have the rows that the query asks for")
    return rows


def digest(sets: list[ResultSet]) -> str:
    """Of all rows, kept or not: equal results have equal digests."""
    whole = sha256()
    for each in sets:
        whole.update(each.digest.digest() if each.digest else each.tag.encode())
    return whole.hexdigest()


def row_values(body: bytes, decoders: list[Callable[[bytes], Any]]) -> list[Any]:
    """The values of a DataRow message."""
    row: list[Any] = []
    at = 2
    for decode in decoders:
        size = int.from_bytes(body[at : at + 4], "big", signed=True)
        at += 4
        if size < 0:
            row.append(None)
            continue
        row.append(decode(body[at : at + size]))
        at += size
    return row


def _boolean(value: bytes) -> Any:
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


DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: _boolean, 20: _integer, 21: _integer, 23: _integer, 26: _integer, 700: _real, 701: _real,
}  # fmt: skip
