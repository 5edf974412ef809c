"""Reports of a host about its tasks to the control database, written in batches.

There are two streams: an executor waits for starts and commit intents, so they must not wait until results are written.
Items that arrive while a batch is written form the next batch: one task is written at once, a hundred in one
statement. Every report carries the invocation id, so reports are idempotent and are repeated when a reply is lost.
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
from engine.model.verification import COMMITTED
from engine.process.exit_codes import FINAL, Fenced
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sql import Queries

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "executions.sql")

MAX_BATCH_LENGTH = 8 * 1024 * 1024  # characters of one statement; a longer item is written alone
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between attempts to reach the control database
KINDS = ("start", "intent", "result", "release", "contact")  # in the order of report's parameters
KEY_FIELDS = ("run_day", "job_execution_id", "step_id", "ordinal", "attempt", "invocation_id")


class BatchAck(msgspec.Struct, eq=False):
    """The acknowledgement of items that are awaited together."""

    pending: int
    refused_invocations: "asyncio.Future[set[UUID]]"
    refused: set[UUID]

    def count(self, invocation: UUID | None, *, accepted: bool) -> None:
        if not accepted and invocation is not None:
            self.refused.add(invocation)
        self.pending -= 1
        if not self.pending and not self.refused_invocations.done():
            self.refused_invocations.set_result(self.refused)


class ReportItem(msgspec.Struct, eq=False):
    kind: str
    text: str
    invocation: UUID | None
    ack: BatchAck | None = None

    def acknowledge(self, *, accepted: bool) -> None:
        if self.ack is not None:
            self.ack.count(self.invocation, accepted=accepted)


class Reporter:
    def __init__(
        self, store: ControlDatabase, host: UUID, clock: Clock, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self._awaited, self._results = (ReportStream(store, host, clock, renew) for _ in range(2))

    def started(
        self, tasks: Sequence[Task], pid: int | None, version: int | None
    ) -> "asyncio.Future[set[UUID]]":
        """The invocations that must not run, once the start of the others is committed."""
        session = f',"backend_pid":{pid or "null"},"server_version":{version or "null"}}}'
        return self._await("start", tasks, session)

    def commit_intent(self, task: Task, xact_id: str) -> "asyncio.Future[set[UUID]]":
        """Empty once the id of the task's transaction is committed; else the task must not commit."""
        return self._await("intent", [task], _fields({"xact_id": xact_id}))

    def finished(self, task: Task, outcome: Outcome) -> None:
        """For a task whose start is committed."""
        self._results.add(ReportItem("result", task.key + _fields(outcome), task.invocation_id))

    def released(self, task: Task, pause: WaitPause | None = None) -> None:
        """For a task that was reserved and not started."""
        reason, seconds, message = pause or (None, None, None)
        fields = {"wait_reason": reason, "pause_seconds": seconds, "message": message}
        self._results.add(ReportItem("release", task.key + _fields(fields), task.invocation_id))

    def server_seen(self, contact: dict[str, Any]) -> None:
        self._results.add(ReportItem("contact", msgspec.json.encode(contact).decode(), None))

    async def run(self) -> None:
        """Until it is cancelled, or the host must end."""
        async with asyncio.TaskGroup() as group:
            for stream in (self._awaited, self._results):
                group.create_task(stream.run())

    async def flushed(self) -> None:
        await self._awaited.empty.wait()
        await self._results.empty.wait()

    def _await(self, kind: str, tasks: Sequence[Task], fields: str) -> "asyncio.Future[set[UUID]]":
        ack = BatchAck(len(tasks), asyncio.get_running_loop().create_future(), set())
        for task in tasks:
            self._awaited.add(ReportItem(kind, task.key + fields, task.invocation_id, ack))
        return ack.refused_invocations


class ReportStream:
    """Writes items in their order."""

    def __init__(
        self, store: ControlDatabase, host: UUID, clock: Clock, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self.empty = asyncio.Event()
        self.empty.set()
        self._store = store
        self._host = host
        self._clock = clock
        self._renew = renew  # reads the epoch that the host writes with
        self._connection = ControlConnection(store)
        self._items: deque[ReportItem] = deque()
        self._has_items = asyncio.Event()

    def add(self, item: ReportItem) -> None:
        self._items.append(item)
        self.empty.clear()
        self._has_items.set()

    async def run(self) -> None:
        try:
            while True:
                await self._has_items.wait()
                await self._write(self._batch())
                if not self._items:
                    self._has_items.clear()
                    self.empty.set()
        finally:
            self._connection.disconnect()

    def _batch(self) -> list[ReportItem]:
        items = [self._items.popleft()]
        size = len(items[0].text)
        while self._items and size + len(self._items[0].text) <= MAX_BATCH_LENGTH:
            size += len(self._items[0].text)
            items.append(self._items.popleft())
        return items

    async def _write(self, items: list[ReportItem]) -> None:
        await reach("host.before_record")
        try:
            refused = set(await self._retry(items))
        except asyncpg.PostgresError as error:
            await self._one_by_one(items, error)
            return
        await reach("host.recorded")
        for item in items:
            item.acknowledge(accepted=item.invocation not in refused)

    async def _retry(self, items: list[ReportItem]) -> list[UUID]:
        pause = FIRST_PAUSE
        while True:
            try:
                return list(
                    await self._connection.value(
                        Q.report, self._host, self._store.epoch, *_columns(items)
                    )
                )
            except Fenced:
                await self._read_epoch()
            except Fault as fault:
                if pause == FIRST_PAUSE:
                    log.warning("reports wait for the control database", why=fault.message)
            await self._clock.sleep(timedelta(seconds=pause))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _read_epoch(self) -> None:
        """Of the engine in charge; the control database may be unavailable meanwhile."""
        try:
            await self._renew()
        except FINAL:
            raise
        except Fault as fault:
            log.debug("can't read the epoch", why=fault.message)

    async def _one_by_one(self, items: list[ReportItem], error: asyncpg.PostgresError) -> None:
        """The database refuses an item of the batch: writes each on its own, on a new connection."""
        self._connection.disconnect()
        if len(items) > 1:
            for item in items:
                await self._write([item])
            return
        item = items[0]
        log.error("can't write a report", kind=item.kind, why=str(error), code=error.sqlstate)
        replacement = _replacement(item)
        item.acknowledge(accepted=False)
        if replacement is not None:
            await self._clock.sleep(timedelta(seconds=FIRST_PAUSE))
            await self._write([replacement])


def _columns(items: list[ReportItem]) -> list[str | None]:
    """One JSON array for each kind; None where there are no items."""
    return [_array([item.text for item in items if item.kind == kind]) for kind in KINDS]


def _array(texts: list[str]) -> str | None:
    return f"[{','.join(texts)}]" if texts else None


def _fields(value: Any) -> str:
    """The rest of a JSON object that begins with the task's key."""
    return "," + msgspec.json.encode(value)[1:].decode()


def _replacement(item: ReportItem) -> ReportItem | None:
    """A report that the database accepts, in the place of one that it refuses, so that the task ends."""
    refused = msgspec.json.decode(item.text)
    key = {name: refused.get(name) for name in KEY_FIELDS}
    match item.kind:
        case "start":
            return ReportItem("release", msgspec.json.encode(key).decode(), item.invocation)
        case "intent":
            fields = {"lifecycle": "Failed", "retry": True, "reason": "InternalError"}
            if refused.get("x") == COMMITTED:
                fields |= {"reason": "VerifyNotAnswered", "checkpoint": {"script": COMMITTED}}
        case "result" if "phase" in refused:  # not a replacement itself
            kept = ("lifecycle", "retry", "again", "reason", "sqlstate", "checkpoint")
            fields = {name: refused.get(name) for name in kept}
        case _:
            return None
    fields["message"] = fields["last_message"] = "The target's message can't be stored."
    return ReportItem("result", msgspec.json.encode(key | fields).decode(), item.invocation)
