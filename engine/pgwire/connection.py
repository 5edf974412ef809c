"""Speaks the simple protocol over a connection that asyncpg has opened.

asyncpg logs in and hears when it is over. In between it would wait for each answer before it says more, and
drop the rows. Answers come in the order of what was said; whoever gives up on one loses the connection.
"""

import asyncio
import re
import struct
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import asyncpg
from msgspec import Struct

from engine.pgwire.parser import AT_REST
from engine.pgwire.results import ResultReader, ResultSet
from muster.core.db import Connection
from muster.core.errors import InvalidRequest

QUERY = struct.Struct("!cI").pack
SQLSTATE = re.compile(r"[0-9A-Z]{5}", re.ASCII)
INTERNAL = "XX000"  # of an error whose own code is none
CLEAN = "discard all"
CLEAN_LIMIT = 5.0  # seconds


class ConnectionAborted(asyncpg.ConnectionDoesNotExistError):
    """By them or by us, before an answer was over."""


GONE = (ConnectionAborted, asyncpg.InterfaceError)  # no refusal: nobody said anything


class PipelinedQuery(NamedTuple):
    """What is said of one attempt in a flight of several; behind it the session is cleaned."""

    opening: str
    text: str
    skip: int  # statements of the opening: their answers are not kept
    end: str


class QueryReply(Struct):
    """What was heard of one."""

    sets: list[ResultSet]
    notices: list[dict[str, str]]
    received: int
    skipping: int  # statements of the opening that were not answered
    offset: int  # of the text in what was sent
    failure: dict[str, str] | None
    at: float  # of the loop's time
    status: int = AT_REST  # of the transaction, after the text
    tag: str = ""  # of its end
    clean: bool = False

    def said(self) -> list[dict[str, str]]:
        return self.notices

    @property
    def error(self) -> asyncpg.PostgresError | None:
        return None if self.failure is None else _refusal(self.failure)


class Pipeline:
    """Answers to each leg, of which there are three: to its text, to its end and to the cleaning."""

    def __init__(
        self, ear: ResultReader, legs: Sequence[PipelinedQuery], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.answers: list[QueryReply] = []
        self.farewell: dict[str, str] | None = None  # what the server said last before it hung up
        self.landed: asyncio.Future[None] = loop.create_future()
        self._ear = ear
        self._legs = deque(legs)
        self._time = loop.time
        self._next = self._text_answered
        self._depart()

    def answered(self, failure: dict[str, str] | None) -> None:
        self._next(failure)

    def broken(self, failure: dict[str, str] | None) -> None:
        self.farewell = failure
        self._land()

    @property
    def loss(self) -> ConnectionAborted:
        """What became of the first that has no answer."""
        return _hung_up(self.farewell)

    def _land(self) -> None:
        if not self.landed.done():
            self.landed.set_result(None)

    def _depart(self) -> None:
        if not self._legs:
            self._land()
            return
        leg = self._legs.popleft()
        self._offset = len(leg.opening)
        self._ear.reset()
        self._ear.turn(listening=True, skip=leg.skip)
        self._next = self._text_answered

    def _text_answered(self, failure: dict[str, str] | None) -> None:
        ear = self._ear
        self._answer = QueryReply(
            ear.sets, ear.said(), ear.received, ear.skipping, self._offset, failure, self._time(),
            ear.status,
        )  # fmt: skip
        ear.turn(listening=False)
        ear.tag = b""
        self._next = self._end_answered

    def _end_answered(self, failure: dict[str, str] | None) -> None:
        answer = self._answer
        answer.failure = answer.failure or failure
        answer.tag = self._ear.tag.decode("ascii", "replace")
        self._next = self._cleaned

    def _cleaned(self, failure: dict[str, str] | None) -> None:
        self._answer.clean = failure is None
        self.answers.append(self._answer)
        self._depart()


class WireConnection:
    def __init__(self, connection: Connection, ear: ResultReader) -> None:
        self.connection = connection
        self.ear = ear
        self.lost = connection.is_closed()
        self.cleaned: asyncio.Future[bool] | None = None  # whether, once it is known
        self.loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._waiting: deque[asyncio.Future[str]] = deque()  # for answers
        self._flight: Pipeline | None = None
        self._unsent = b""
        self._limit: asyncio.TimerHandle | None = None

    def take_over(self) -> None:
        """From now on nobody else speaks or hears here."""
        if self.ear.dialer is None:
            raise ConnectionError("nobody has dialled")
        settings = self.connection.get_settings()
        standard = getattr(settings, "standard_conforming_strings", "on")
        self.ear.standard_strings = standard == "on"
        self.ear.answered, self.ear.hung_up = self._over, self._end
        self._transport = self.ear.dialer.hand_over()

    @property
    def in_transaction(self) -> bool:
        return self.ear.status != AT_REST

    async def say(self, text: str, *, limit: float | None = None) -> str:
        """The last tag of the answer."""
        async with asyncio.timeout(limit):
            await self._until_cleaned()
            self.ear.listening = False
            return await self._answer(text)

    async def ask(self, text: str, *, skip: int = 0) -> list[ResultSet]:
        """All that is answered, within the ear's bounds; not to the first statements."""
        if self.cleaned is not None:
            await self._until_cleaned()
        self.ear.turn(listening=True, skip=skip)
        await self._answer(text)
        return self.ear.sets

    async def say_and_clean(self, text: str) -> str:
        """The last tag of the first answer. The second comes behind: see `cleaned`."""
        if self.cleaned is not None:
            await self._until_cleaned()
        received = self.ear.received
        self.ear.turn(listening=True)  # for notices
        await self._answer(text, clean=True)
        self.ear.received = received
        return self.ear.sets[-1].tag if self.ear.sets else ""

    async def fly(self, legs: Sequence[PipelinedQuery]) -> Pipeline:
        """All of them in one breath. There are fewer answers where the line broke; what has none may have run."""
        if self.cleaned is not None:
            await self._until_cleaned()
        said = [text for leg in legs for text in (leg.opening + leg.text, leg.end, CLEAN)]
        framed = b"".join([self.framed(text) for text in said])
        flight = Pipeline(self.ear, legs, self.loop)
        if self.lost:
            return flight
        self._flight = flight
        self._queue(framed)
        try:
            await flight.landed
        except asyncio.CancelledError:
            self.abandon()
            raise
        finally:
            self._flight = None
        if not self.lost:
            self.cleaned = self.loop.create_future()
            self.cleaned.set_result(flight.answers[-1].clean)
        return flight

    def hang_up(self) -> None:
        self.lost = True
        self.connection.terminate()

    def abandon(self) -> None:
        self.hang_up()

    def framed(self, text: str) -> bytes:
        """As a message of the simple protocol."""
        try:
            said = text.encode(self.ear.encoding)
        except UnicodeEncodeError:
            message = "The script changed client_encoding to one in which the rest of it can't be written."
            raise InvalidRequest(message) from None
        if b"\0" in said:
            raise InvalidRequest("The script has a NUL, which can't be sent.")
        return b"%b%b\0" % (QUERY(b"Q", len(said) + 5), said)

    def _queue(self, framed: bytes) -> None:
        if not self._unsent:
            self.loop.call_soon(self._send)
        self._unsent += framed

    def _send(self) -> None:
        """At the end of a turn of the loop: whoever is woken at the other end would take our place here."""
        unsent, self._unsent = self._unsent, b""
        if not self.lost:
            self._transport.write(unsent)

    async def _answer(self, text: str, *, clean: bool = False) -> str:
        if self.lost:
            raise asyncpg.InterfaceError("The connection is closed.")
        self._queue(self.framed(text))
        if clean:
            self._queue(self.framed(CLEAN))
            self.cleaned = self.loop.create_future()
        self.ear.failure, self.ear.tag = None, b""
        waiting: asyncio.Future[str] = self.loop.create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:  # the answer would be taken for the next one's
            self.abandon()
            raise

    async def _until_cleaned(self) -> None:
        """What is said from now on makes it unclean again."""
        if self.cleaned is not None:
            await asyncio.shield(self.cleaned)
            self.cleaned = None

    def _over(self) -> None:
        failure, self.ear.failure = self.ear.failure, None
        if self._flight is not None:
            self._flight.answered(failure)
        elif self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                if failure is not None:
                    waiting.set_exception(_refusal(failure))
                else:
                    waiting.set_result(self.ear.tag.decode("ascii", "replace"))
            if self.cleaned is not None:
                self._limit = self.loop.call_later(CLEAN_LIMIT, self.abandon)
        elif self.cleaned is not None and not self.cleaned.done():
            self._is_cleaned(good=failure is None)
        else:
            self.ear.break_off("it speaks out of turn")

    def _is_cleaned(self, *, good: bool) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if self.cleaned is not None and not self.cleaned.done():
            self.cleaned.set_result(good)

    def _end(self) -> None:
        self.lost = True
        failure = self.ear.failure
        if self._flight is not None:
            self._flight.broken(failure)
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(_hung_up(failure))
        self._is_cleaned(good=False)


def _hung_up(farewell: dict[str, str] | None) -> ConnectionAborted:
    """With what the server said last, if it said something."""
    error = ConnectionAborted("The connection was closed.")
    error.__cause__ = None if farewell is None else _refusal(farewell)
    return error


def _refusal(failure: dict[str, str]) -> asyncpg.PostgresError:
    """In the server's words only, of which asyncpg takes some for no error, and adds to others."""
    if not SQLSTATE.fullmatch(failure.get("C", "")):
        failure = failure | {"C": INTERNAL}
    made = asyncpg.PostgresError.new(failure)
    if not isinstance(made, asyncpg.PostgresError):
        error = asyncpg.UnknownPostgresError(str(made.args[0]))
        error.__dict__.update(made.__dict__)
        made = error
    made.__dict__["hint"] = failure.get("H")
    return made
