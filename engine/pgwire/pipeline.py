"""Several queries sent at once on one connection, each with a reply of its own.

A query is three messages: its text, the end of its transaction, and a reset of the session.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import asyncpg
from msgspec import Struct

from engine.pgwire.errors import ConnectionAborted, connection_aborted, server_error
from engine.pgwire.parser import IDLE
from engine.pgwire.result_set import ResultSet
from engine.pgwire.results import ResultReader


class PipelinedQuery(NamedTuple):
    setup: str  # sent in one message with the text
    text: str
    skip: int  # statements of the setup: their results are not kept
    end: str  # ends the transaction


class QueryReply(Struct):
    sets: list[ResultSet]
    notices: list[dict[str, str]]
    received: int  # bytes
    skipping: int  # statements of the setup that were not answered
    offset: int  # of the text in its message
    failure: dict[str, str] | None
    at: float  # of the loop's time
    status: int = IDLE  # of the transaction, after the text
    tag: str = ""  # of the end
    clean: bool = False  # the reset succeeded

    def all_notices(self) -> list[dict[str, str]]:
        return self.notices

    @property
    def error(self) -> asyncpg.PostgresError | None:
        return None if self.failure is None else server_error(self.failure)


class Pipeline:
    """Collects the replies in the order of the queries."""

    def __init__(
        self,
        reader: ResultReader,
        queries: Sequence[PipelinedQuery],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.replies: list[QueryReply] = []
        self.last_error: dict[str, str] | None = None  # before the server closed the connection
        self.finished: asyncio.Future[None] = loop.create_future()
        self._reader = reader
        self._queries = deque(queries)
        self._time = loop.time
        self._on_reply = self._on_text_reply
        self._begin_next()

    def answered(self, failure: dict[str, str] | None) -> None:
        """The next message has its reply."""
        self._on_reply(failure)

    def connection_lost(self, last_error: dict[str, str] | None) -> None:
        self.last_error = last_error
        self._finish()

    @property
    def loss(self) -> ConnectionAborted:
        """The error of the first query without a reply."""
        return connection_aborted(self.last_error)

    def _finish(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def _begin_next(self) -> None:
        if not self._queries:
            self._finish()
            return
        query = self._queries.popleft()
        self._offset = len(query.setup)
        self._reader.reset()
        self._reader.begin_query(listening=True, skip=query.skip)
        self._on_reply = self._on_text_reply

    def _on_text_reply(self, failure: dict[str, str] | None) -> None:
        reader = self._reader
        self._reply = QueryReply(
            reader.sets, reader.all_notices(), reader.received, reader.skipping, self._offset,
            failure, self._time(), reader.status,
        )  # fmt: skip
        reader.begin_query(listening=False)
        reader.tag = b""
        self._on_reply = self._on_end_reply

    def _on_end_reply(self, failure: dict[str, str] | None) -> None:
        reply = self._reply
        reply.failure = reply.failure or failure
        reply.tag = self._reader.tag.decode("ascii", "replace")
        self._on_reply = self._on_reset_reply

    def _on_reset_reply(self, failure: dict[str, str] | None) -> None:
        self._reply.clean = failure is None
        self.replies.append(self._reply)
        self._begin_next()
