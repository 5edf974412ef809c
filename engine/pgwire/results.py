"""Reads a server's replies within limits: result sets, tags, notices.

Statements use the simple protocol, so values arrive as text: a statement costs one round trip, no type has to be
known, and the connection is closed before a reply that is too large fills memory.
"""

import re
from collections.abc import Callable

from engine.pgwire.parser import MessageParser, fields, text
from engine.pgwire.result_set import ResultSet, RowDescription
from engine.pgwire.result_sink import FirstRows, ResultSink

MAX_ROWS, MAX_BYTES = 100_000, 64 * 1024 * 1024  # of one statement; more closes the connection
MAX_RESULT_SETS = 100_000  # of one message; more closes the connection
MAX_SKIPPED_BYTES = 1024 * 1024  # of replies that are not kept; more closes the connection
MAX_TAG_LENGTH = 64  # bytes
MAX_COLUMNS = 1664  # PostgreSQL's own limit
CACHED_DESCRIPTIONS, MAX_CACHED_DESCRIPTION = 50, 4 * 1024  # bytes
MAX_NOTICES, MAX_NOTICE_BYTES = 100, 64 * 1024

DESCRIPTION, ROW, COMPLETE, NOTICE, COPY_DATA = b"TDCNd"
COPY_OUT, COPY_IN = ord("H"), b"GW"
COMPLETED = b"C\0\0\0"
STATEMENT_MESSAGES = frozenset((DESCRIPTION, ROW, COMPLETE, NOTICE, COPY_DATA, COPY_OUT, *COPY_IN))
# The reply to a list of settings and one check after it, which is most of what most sessions receive: skipped by
# one match. A reply that does not match is parsed message by message.
SETTINGS = re.compile(
    rb"(?:C\0\0\0\x0aBEGIN\0)?(?:C\0\0\0\x08SET\0)+"
    rb"(?:T\0\0\0!\0\x01\?column\?\0\0{6}\0\0\0\x17\0\x04\xff{4}\0\0D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0)?"
).match
NOTICE_FIELDS = {
    "severity": "V", "sqlstate": "C", "message": "M", "detail": "D", "hint": "H", "context": "W",
}  # fmt: skip


class ResultReader(MessageParser):
    def __init__(self, sink: ResultSink | None = None) -> None:
        super().__init__()
        self.sink = sink or FirstRows()
        self._descriptions: dict[bytes, RowDescription] = {}
        self.copy_ready: Callable[[], None] | None = (
            None  # called when the server asks for data to copy
        )
        self.tag = b""  # the last one that was received while not listening
        self.reset()

    def reset(self) -> None:
        """The next caller's queries follow."""
        self.received = 0  # bytes
        self.notices: list[dict[str, str]] = []
        self.limit_exceeded = self.copy_in_requested = False
        self._notice_bytes = self._dropped_notices = 0
        self.sink.reset()
        self.begin_query(listening=False)

    def begin_query(self, *, listening: bool, skip: int = 0) -> None:
        """A message is sent. Results are kept if `listening`, except those of the first `skip` statements."""
        self.sets: list[ResultSet] = []
        self._open: ResultSet | None = None
        self.skipping = skip  # statements
        self._skipped = 0  # bytes
        self.listening = listening

    def all_notices(self) -> list[dict[str, str]]:
        """With the number of those that were dropped."""
        if not self._dropped_notices:
            return self.notices
        dropped = f"{self._dropped_notices} more not kept."
        return [*self.notices, {"severity": "INFO", "message": dropped}]

    def count(self, size: int) -> None:
        if self.listening:
            self.received += size
        if self.skipping or not self.listening:
            self._skipped += size
            if self._skipped > MAX_SKIPPED_BYTES:
                self._exceed_limit()

    def too_large(self) -> None:
        self._exceed_limit()

    def skip_known_prefix(self, data: bytes, at: int) -> int:
        if self.skipping and (settings := SETTINGS(data, at)):
            number = settings[0].count(COMPLETED)
            if number <= self.skipping:
                self.skipping -= number
                return settings.end()
        return at

    def on_message(self, kind: int, data: bytes, start: int, end: int) -> None:
        if not self.listening:
            if kind == COMPLETE:
                self.tag = data[start : end - 1][:MAX_TAG_LENGTH]
        elif self.skipping:
            if kind == COMPLETE:
                self.skipping -= 1
        elif kind in STATEMENT_MESSAGES:
            self._on_statement_message(kind, data[start:end])

    def ready(self) -> None:
        self.listening = False
        self._skipped = 0
        self.answered()

    def _on_statement_message(self, kind: int, body: bytes) -> None:
        if kind == ROW:
            self._on_row(body)
        elif kind == DESCRIPTION:
            self._on_description(body)
        elif kind == COMPLETE:
            self._on_complete(body)
        elif kind == NOTICE:
            self._on_notice(body)
        elif kind == COPY_DATA:
            self._counted(len(body))
        elif kind == COPY_OUT:
            self._open = ResultSet(copied_out=True)
        elif self.copy_ready is not None:
            self.copy_ready()
        else:
            self.copy_in_requested = True
            self.break_off("it asks for data to copy, and there is none")

    def _on_complete(self, body: bytes) -> None:
        result, self._open = self._open or ResultSet(), None
        result.tag = text(body[:-1][:MAX_TAG_LENGTH])
        self.sets.append(result)
        if len(self.sets) > MAX_RESULT_SETS:
            self._exceed_limit()

    def _exceed_limit(self) -> None:
        self.limit_exceeded = True
        self.break_off("it returned more than can be received")

    def _counted(self, size: int) -> ResultSet | None:
        """The open result set with one more row; None beyond the limits."""
        result = self._open
        if result is None:
            result = self._open = ResultSet()
        result.count += 1
        result.size += size
        if result.unlimited or (result.count <= MAX_ROWS and result.size <= MAX_BYTES):
            return result
        self._exceed_limit()
        return None

    def _on_description(self, body: bytes) -> None:
        description = self._descriptions.get(body)
        if description is None:
            if int.from_bytes(body[:2], "big") > MAX_COLUMNS:
                self.break_off("it returned more columns than there can be")
                return
            description = RowDescription.of(body)
            if len(self._descriptions) >= CACHED_DESCRIPTIONS:
                self._descriptions.clear()
            if len(body) <= MAX_CACHED_DESCRIPTION:
                self._descriptions[body] = description
        self._open = description.result_set()
        self.sink.begin(self._open, len(body))

    def _on_row(self, body: bytes) -> None:
        result = self._counted(len(body))
        if result is None or result.digest is None:
            return
        if len(body) < 2 + 4 * len(result.decoders):
            self.break_off("it sent a row without its columns")
            return
        result.digest.update(body)
        self.sink.row(result, body)

    def _on_notice(self, body: bytes) -> None:
        """What follows a notice that is not kept is only counted: a script may send millions."""
        if self._dropped_notices:
            self._dropped_notices += 1
            return
        received = fields(body)
        notice = {name: received[code] for name, code in NOTICE_FIELDS.items() if code in received}
        size = sum(map(len, notice.values()))
        if len(self.notices) >= MAX_NOTICES or self._notice_bytes + size > MAX_NOTICE_BYTES:
            self._dropped_notices += 1
            return
        self._notice_bytes += size
        self.notices.append(notice)
