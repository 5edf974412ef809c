"""Speaks the simple protocol over a connection that asyncpg has opened.

asyncpg logs in and notices when the connection ends. In between it would wait for each reply before it sends the
next message, and drop the rows. Replies arrive in the order of the messages; a caller that stops waiting for one
loses the connection.
"""

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator, Sequence

import asyncpg

from engine.pgwire.errors import connection_aborted, server_error
from engine.pgwire.parser import IDLE
from engine.pgwire.pipeline import Pipeline, PipelinedQuery
from engine.pgwire.result_set import ResultSet
from engine.pgwire.results import ResultReader
from muster.core.db import Connection
from muster.core.errors import InvalidRequest

MESSAGE_HEADER = struct.Struct("!cI").pack
RESET = "discard all"
RESET_TIMEOUT = 5.0  # seconds
COPY_DONE = MESSAGE_HEADER(b"c", 4)
MAX_UNSENT = 1024 * 1024  # bytes of data to copy that wait in memory for the server
UNSENT_POLL = 0.005  # seconds


class WireConnection:
    def __init__(self, connection: Connection, reader: ResultReader) -> None:
        self.connection = connection
        self.result_reader = reader
        self.lost = connection.is_closed()
        self.reset_result: asyncio.Future[bool] | None = None  # of a reset that was sent
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiting: deque[asyncio.Future[str]] = deque()  # for replies
        self._pipeline: Pipeline | None = None
        self._unsent = b""
        self._reset_timer: asyncio.TimerHandle | None = None

    def take_over(self) -> None:
        """From now on asyncpg neither sends nor receives on this connection."""
        if self.result_reader.dialer is None:
            raise ConnectionError("the connection is not open")
        settings = self.connection.get_settings()
        standard = getattr(settings, "standard_conforming_strings", "on")
        self.result_reader.standard_strings = standard == "on"
        self.result_reader.answered = self._on_reply
        self.result_reader.hung_up = self._on_connection_lost
        self._transport = self.result_reader.dialer.hand_over()

    @property
    def in_transaction(self) -> bool:
        return self.result_reader.status != IDLE

    async def execute(self, text: str, *, limit: float | None = None) -> str:
        """The last tag of the reply; results are dropped."""
        async with asyncio.timeout(limit):
            await self._await_reset()
            self.result_reader.listening = False
            return await self._reply_to(text)

    async def query(self, text: str, *, skip: int = 0) -> list[ResultSet]:
        """All result sets, within the reader's limits, except those of the first `skip` statements."""
        if self.reset_result is not None:
            await self._await_reset()
        self.result_reader.begin_query(listening=True, skip=skip)
        await self._reply_to(text)
        return self.result_reader.sets

    async def execute_and_reset(self, text: str) -> str:
        """The last tag of the reply. A reset is sent with the text; its reply follows: see `reset_result`."""
        if self.reset_result is not None:
            await self._await_reset()
        received = self.result_reader.received
        self.result_reader.begin_query(listening=True)  # for notices
        await self._reply_to(text, reset=True)
        self.result_reader.received = received
        return self.result_reader.sets[-1].tag if self.result_reader.sets else ""

    async def copy_in(self, text: str, chunks: AsyncIterator[bytes]) -> str:
        """The tag of COPY … FROM STDIN; its data is read as fast as the server takes it."""
        await self._await_reset()
        self.result_reader.begin_query(listening=True)
        wanted = asyncio.Event()
        self.result_reader.copy_ready = wanted.set
        reply = self.loop.create_task(self._reply_to(text))
        reply.add_done_callback(lambda _: wanted.set())
        try:
            await wanted.wait()
            await self._send_copy_data(chunks, reply)
            await reply
        finally:
            self.result_reader.copy_ready = None
            if not reply.done():
                reply.cancel()  # the connection is lost with it
                await asyncio.wait({reply})
        return self.result_reader.sets[-1].tag if self.result_reader.sets else ""

    async def _send_copy_data(
        self, chunks: AsyncIterator[bytes], reply: "asyncio.Task[str]"
    ) -> None:
        """Until the server has replied, since it takes no more data then."""
        async for chunk in chunks:
            if reply.done():
                return
            if chunk:
                self._transport.write(MESSAGE_HEADER(b"d", len(chunk) + 4) + chunk)
            # The transport tells asyncpg's protocol when its buffer is empty, not us.
            while not reply.done() and self._transport.get_write_buffer_size() > MAX_UNSENT:  # noqa: ASYNC110
                await asyncio.sleep(UNSENT_POLL)
        if not reply.done():
            self._transport.write(COPY_DONE)

    async def run_pipeline(self, queries: Sequence[PipelinedQuery]) -> Pipeline:
        """Sends all of them at once. After a lost connection there are fewer replies; the rest may have run."""
        if self.reset_result is not None:
            await self._await_reset()
        texts = [text for each in queries for text in (each.setup + each.text, each.end, RESET)]
        messages = b"".join([self.framed(text) for text in texts])
        pipeline = Pipeline(self.result_reader, queries, self.loop)
        if self.lost:
            return pipeline
        self._pipeline = pipeline
        self._queue(messages)
        try:
            await pipeline.finished
        except asyncio.CancelledError:
            self.abandon()
            raise
        finally:
            self._pipeline = None
        if not self.lost:
            self.reset_result = self.loop.create_future()
            self.reset_result.set_result(pipeline.replies[-1].clean)
        return pipeline

    def terminate(self) -> None:
        """Closes the connection at once."""
        self.lost = True
        self.connection.terminate()

    def abandon(self) -> None:
        self.terminate()

    def framed(self, text: str) -> bytes:
        """The text as a Query message."""
        try:
            encoded = text.encode(self.result_reader.encoding)
        except UnicodeEncodeError:
            message = "The text can't be written in the session's client_encoding, which was changed before it."
            raise InvalidRequest(message) from None
        if b"\0" in encoded:
            raise InvalidRequest("The text contains a NUL, which can't be sent.")
        return b"%b%b\0" % (MESSAGE_HEADER(b"Q", len(encoded) + 5), encoded)

    def _queue(self, messages: bytes) -> None:
        if not self._unsent:
            self.loop.call_soon(self._send)
        self._unsent += messages

    def _send(self) -> None:
        """At the end of the loop's iteration, so that callbacks which are ready run before the server does."""
        unsent, self._unsent = self._unsent, b""
        if not self.lost:
            self._transport.write(unsent)

    async def _reply_to(self, text: str, *, reset: bool = False) -> str:
        if self.lost:
            raise asyncpg.InterfaceError("The connection is closed.")
        self._queue(self.framed(text))
        if reset:
            self._queue(self.framed(RESET))
            self.reset_result = self.loop.create_future()
        self.result_reader.failure, self.result_reader.tag = None, b""
        reply: asyncio.Future[str] = self.loop.create_future()
        self._waiting.append(reply)
        try:
            return await reply
        except asyncio.CancelledError:  # the reply would be taken for that of the next message
            self.abandon()
            raise

    async def _await_reset(self) -> None:
        """The next message makes the session unclean again."""
        if self.reset_result is not None:
            await asyncio.shield(self.reset_result)
            self.reset_result = None

    def _on_reply(self) -> None:
        failure, self.result_reader.failure = self.result_reader.failure, None
        if self._pipeline is not None:
            self._pipeline.answered(failure)
        elif self._waiting:
            reply = self._waiting.popleft()
            if not reply.done():
                if failure is not None:
                    reply.set_exception(server_error(failure))
                else:
                    reply.set_result(self.result_reader.tag.decode("ascii", "replace"))
            if self.reset_result is not None:
                self._reset_timer = self.loop.call_later(RESET_TIMEOUT, self.abandon)
        elif self.reset_result is not None and not self.reset_result.done():
            self._finish_reset(succeeded=failure is None)
        else:
            self.result_reader.break_off("it speaks out of turn")

    def _finish_reset(self, *, succeeded: bool) -> None:
        if self._reset_timer is not None:
            self._reset_timer.cancel()
            self._reset_timer = None
        if self.reset_result is not None and not self.reset_result.done():
            self.reset_result.set_result(succeeded)

    def _on_connection_lost(self) -> None:
        self.lost = True
        failure = self.result_reader.failure
        if self._pipeline is not None:
            self._pipeline.connection_lost(failure)
        while self._waiting:
            reply = self._waiting.popleft()
            if not reply.done():
                reply.set_exception(connection_aborted(failure))
        self._finish_reset(succeeded=False)
