"""All that a host tells the control database about its tasks: what somebody waits for, and what became of them.

Each goes its own way, for a task that is about to be sent must not wait until many others are recorded.
What arrived while the last words were being written goes together: one task alone is written at once,
a hundred in one statement. Written twice is harmless, so an answer that got lost is no question.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from engine.attempt.outcome import Outcome
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.host.session_wait import WaitPause
from engine.model.task import Task
from engine.process.exit_codes import FINAL, Fenced
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sql import Queries

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "executions.sql")

LARGEST = 8 * 1024 * 1024  # characters of one statement, as far as there is a choice
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between tries to reach the control database
KINDS = ("start", "commit", "result", "return", "contact")  # as report takes them


class BatchAck(msgspec.Struct, eq=False):
    """Of words that belong together."""

    open: int
    said: "asyncio.Future[set[UUID]]"  # the invocations that were refused
    refused: set[UUID]

    def count(self, invocation: UUID | None, *, good: bool) -> None:
        if not good and invocation is not None:
            self.refused.add(invocation)
        self.open -= 1
        if not self.open and not self.said.done():
            self.said.set_result(self.refused)


class ReportItem(msgspec.Struct, eq=False):
    kind: str
    text: str
    invocation: UUID | None
    said: "asyncio.Future[bool] | None" = None  # for who waits for it
    ballot: BatchAck | None = None


class Reporter:
    def __init__(
        self, store: ControlDatabase, host: UUID, clock: Clock, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self._awaited, self._told = (ReportStream(store, host, clock, renew) for _ in range(2))

    def start(self, task: Task, pid: int | None, version: int | None) -> Awaitable[bool]:
        """True once it is committed; False: nothing may be sent."""
        return self._ask("start", task, _session(pid, version))

    def start_all(
        self, tasks: Sequence[Task], pid: int | None, version: int | None
    ) -> "asyncio.Future[set[UUID]]":
        """Those of which nothing may be sent, once the others are committed."""
        ballot = BatchAck(len(tasks), asyncio.get_running_loop().create_future(), set())
        for task in tasks:
            text = task.key + _session(pid, version)
            self._awaited.add(ReportItem("start", text, task.invocation_id, ballot=ballot))
        return ballot.said

    def intend(self, task: Task, xact_id: str) -> Awaitable[bool]:
        """True once it is known by which transaction the task commits; False: it must not."""
        return self._ask("commit", task, _rest({"x": xact_id}))

    def result(self, task: Task, outcome: Outcome) -> None:
        """Of a task whose start is committed."""
        self._told.add(ReportItem("result", task.key + _rest(outcome), task.invocation_id))

    def give_back(self, task: Task, pause: WaitPause | None = None) -> None:
        """A reservation that came to nothing; no attempt was made."""
        why, wait, said = pause or (None, None, None)
        rest = _rest({"why": why, "wait": wait, "said": said})
        self._told.add(ReportItem("return", task.key + rest, task.invocation_id))

    def contact(self, told: dict[str, Any]) -> None:
        self._told.add(ReportItem("contact", msgspec.json.encode(told).decode(), None))

    async def run(self) -> None:
        """Until it is cancelled, or something final is learned."""
        async with asyncio.TaskGroup() as group:
            for stream in (self._awaited, self._told):
                group.create_task(stream.run())

    async def flushed(self) -> None:
        await self._awaited.quiet.wait()
        await self._told.quiet.wait()

    def _ask(self, kind: str, task: Task, rest: str) -> Awaitable[bool]:
        said = asyncio.get_running_loop().create_future()
        self._awaited.add(ReportItem(kind, task.key + rest, task.invocation_id, said))
        return said


class ReportStream:
    """Words in their order."""

    def __init__(
        self, store: ControlDatabase, host: UUID, clock: Clock, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self.quiet = asyncio.Event()
        self.quiet.set()
        self._store = store
        self._host = host
        self._clock = clock
        self._renew = renew  # learns the epoch that we write with
        self._line = ControlConnection(store)
        self._words: deque[ReportItem] = deque()
        self._some = asyncio.Event()

    def add(self, word: ReportItem) -> None:
        self._words.append(word)
        self.quiet.clear()
        self._some.set()

    async def run(self) -> None:
        try:
            while True:
                await self._some.wait()
                await self._write(self._batch())
                if not self._words:
                    self._some.clear()
                    self.quiet.set()
        finally:
            self._line.hang_up()

    def _batch(self) -> list[ReportItem]:
        words = [self._words.popleft()]
        size = len(words[0].text)
        while self._words and size + len(self._words[0].text) <= LARGEST:
            size += len(self._words[0].text)
            words.append(self._words.popleft())
        return words

    async def _write(self, words: list[ReportItem]) -> None:
        await reach("host.before_record")
        try:
            refused = set(await self._insist(words))
        except asyncpg.PostgresError as error:
            await self._one_by_one(words, error)
            return
        await reach("host.recorded")
        for word in words:
            _answer(word, good=word.invocation not in refused)

    async def _insist(self, words: list[ReportItem]) -> list[UUID]:
        pause = FIRST_PAUSE
        while True:
            try:
                return list(
                    await self._line.value(
                        Q.report, self._host, self._store.epoch, *_columns(words)
                    )
                )
            except Fenced:
                await self._learn()
            except Fault as fault:
                if pause == FIRST_PAUSE:
                    log.warning("results wait for the control database", why=fault.message)
            await self._clock.sleep(timedelta(seconds=pause))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _learn(self) -> None:
        """Which epoch is in charge now; it may be away while we ask."""
        try:
            await self._renew()
        except FINAL:
            raise
        except Fault as fault:
            log.debug("the epoch can't be learned", why=fault.message)

    async def _one_by_one(self, words: list[ReportItem], error: asyncpg.PostgresError) -> None:
        """One of them can't be written: the others must not suffer, nor it from what went wrong in the session."""
        self._line.hang_up()
        if len(words) > 1:
            for word in words:
                await self._write([word])
            return
        word = words[0]
        log.error("a word can't be written", kind=word.kind, why=str(error), code=error.sqlstate)
        instead = _instead(word)
        _answer(word, good=False)
        if instead is not None:
            await self._clock.sleep(timedelta(seconds=FIRST_PAUSE))
            await self._write([instead])


def _columns(words: list[ReportItem]) -> list[str | None]:
    """One array for each kind; null where there is nothing of it."""
    return [_array([word.text for word in words if word.kind == kind]) for kind in KINDS]


def _array(texts: list[str]) -> str | None:
    return f"[{','.join(texts)}]" if texts else None


def _rest(told: Any) -> str:
    """Behind the task's key."""
    return "," + msgspec.json.encode(told)[1:].decode()


def _session(pid: int | None, version: int | None) -> str:
    """In which it starts, behind the task's key."""
    return f',"p":{pid or "null"},"v":{version or "null"}}}'


def _answer(word: ReportItem, *, good: bool) -> None:
    if word.ballot is not None:
        word.ballot.count(word.invocation, good=good)
    if word.said and not word.said.done():  # whoever waited may have been broken off
        word.said.set_result(good)


def _instead(word: ReportItem) -> ReportItem | None:
    """What is said of a task whose own word the database refuses, so that nobody waits for it."""
    told = msgspec.json.decode(word.text)
    key = {name: told.get(name) for name in ("d", "r", "s", "o", "a", "i")}
    match word.kind:
        case "start":
            return ReportItem("return", msgspec.json.encode(key).decode(), word.invocation)
        case "commit":
            plain = {"lifecycle": "Failed", "retry": True, "reason": "InternalError"}
        case "result" if "phase" in told:  # not ours already
            kept = ("lifecycle", "retry", "again", "reason", "sqlstate")
            plain = {name: told.get(name) for name in kept}
        case _:
            return None
    plain["message"] = plain["lastMessage"] = "What the target said can't be kept."
    return ReportItem("result", msgspec.json.encode(key | plain).decode(), word.invocation)
