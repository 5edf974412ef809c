"""JobTaskHost: registers with the engine in charge, lends it workers, and outlives it.

A core that dies changes nothing here: the next epoch adopts the registration, and from then on the host
writes with that epoch. It ends when it is refused, when a newer epoch did not adopt it, when its own
registration is over or draining, or when it could not renew for all of its patience.
"""

import asyncio
import contextlib
import os
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from engine.access.credentials import Credentials
from engine.attempt.cancel_token import HOST_STOPPED
from engine.attempt.outcome import Outcome
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.db.membership import HostState
from engine.db.notifier import Notifier
from engine.db.wakeups import PAUSES, TASKS
from engine.host.definition_cache import DefinitionCache
from engine.host.registration import Registration
from engine.host.reporter import Reporter
from engine.host.task_registry import TaskRegistry
from engine.host.task_runner import ReusableConnection, TaskRunner
from engine.host.workers import Workers
from engine.model.task import PREFETCH_LIMIT, Task
from engine.pool.budget import Contact
from engine.pool.pool import ConnectionPool
from engine.process.bootstrap import Bootstrap
from engine.process.exit_codes import FINAL, Fenced, gravest
from engine.process.lease import Lease
from engine.process.lifecycle import any_of
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Row
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sql import Queries
from muster.core.version import VERSION

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "executions.sql")

POLL = timedelta(seconds=1)  # in case a wake-up was lost
DRAIN = timedelta(hours=24)  # for what runs when we are asked to go
STOP_LIMIT = 3.0  # seconds for what runs when we have to go


class JobTaskHost:
    def __init__(
        self, bootstrap: Bootstrap, store: ControlDatabase, lease: Lease, clock: Clock
    ) -> None:
        self.workers = Workers(bootstrap.slots)
        self._bootstrap = bootstrap
        self._id = bootstrap.start.id
        self._store = store
        self._registration = Registration(store, self._id, lease, clock)
        self._clock = clock
        self._beat: HostState | None = None
        self._sent_off = asyncio.Event()  # our own registration is draining
        self._leaving = False  # nothing new begins here any more
        self._rung = asyncio.Event()  # there may be something to take
        self._asked = asyncio.Event()  # what we must obey may be another now
        self._taking = asyncio.Lock()
        self._notifier = Notifier(store, self._notified)
        self._line = ControlConnection(store)
        self._library = DefinitionCache(self._line, clock)
        self._hand = TaskRegistry()
        self._scribe = Reporter(store, self._id, clock, self._renew)
        credentials = Credentials.of(bootstrap, clock)
        self._sessions = ConnectionPool(bootstrap.target_connector(), credentials, clock, self._met)
        self._errands = TaskRunner(
            self._hand, self._library, self._scribe, self._sessions, clock, self._begin
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` and a drain, or until something final happens."""
        if not await self._registration.begin(self.workers.slots, stop):
            return
        log.info("this host is registered", epoch=self._store.epoch, slots=self.workers.slots)
        try:
            async with asyncio.TaskGroup() as group:
                doing = [
                    group.create_task(each())
                    for each in (self.workers.run, self._beat_on, self._scribe.run, self._take_on)
                ]
                try:
                    await any_of(stop, self._sent_off)
                    self._leaving = True
                    self._close()
                    await self._have_taken()
                    await self._registration.leave()
                    await self.workers.drain(DRAIN)
                finally:
                    await self._wind_up()
                    for each in doing:
                        each.cancel()
        except BaseExceptionGroup as several:
            raise gravest(several) from None
        finally:
            self._line.hang_up()
            self._notifier.close()
            await asyncio.gather(self._sessions.close(), self._registration.end())

    # What is to be done

    async def _take_on(self) -> None:
        """Dispatches in their order, each once."""
        last = 0
        while True:
            rung = self._rung.is_set()
            self._rung.clear()
            async with self._taking:
                last = await self._take(last, rung=rung)
            await self._clock.sleep_or(self._rung, POLL)

    async def _take(self, last: int, *, rung: bool) -> int:
        """Behind that dispatch; the last that is known now."""
        ready = self._errands.ready() if rung and self._is_idle else None
        try:
            await self._notifier.ensure_listening((TASKS, PAUSES))
            for row in await self._taken(last, ready):
                last = max(last, row["number"])
                if row["begun"] and ready is not None:
                    self._go_on(Task.of(row[4:]), ready)
                    ready = None
                else:
                    self._accept(row)
        except FINAL:
            raise
        except Fault as fault:
            log.debug("nothing can be taken", why=fault.message)
        finally:
            if ready is not None:
                self._errands.unready(ready)
        return last

    async def _have_taken(self) -> None:
        """What is being taken may have begun with it: it is ours to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_LIMIT), self._taking:
                pass

    @property
    def _is_idle(self) -> bool:
        return self.workers.is_open and not self._hand

    async def _taken(self, last: int, ready: ReusableConnection | None) -> list[Row]:
        try:
            rows = await self._said(last, ready)
        except Fenced:
            if ready is None:
                raise
            rows = await self._said(last, None)  # nothing begins by an epoch that has gone
        if rows:
            await reach("host.taken")
        return rows

    async def _said(self, last: int, ready: ReusableConnection | None) -> list[Row]:
        if ready is None:
            return await self._line.fetch(Q.take, self._id, last)
        which = (last, self._store.epoch, *ready.said)
        return await self._line.fetch(Q.take_and_start, self._id, *which)

    def _notified(self, channel: str) -> None:
        (self._rung if channel == TASKS else self._asked).set()

    def _accept(self, row: Any) -> None:
        if row["kind"] == "cancel":
            self._hand.cancel(row["invocation_id"])
            return
        task = Task.of(row[4:])
        if row["started"]:
            self._scribe.result(task, Outcome.unheard())
        elif self._leaving:
            self._scribe.give_back(task)
        elif self._hand.add(task, row["slot"]):
            loop = asyncio.get_running_loop()
            loop.call_later(PREFETCH_LIMIT, self._prefetch_expired, task)
        else:
            self._begin(task)

    def _go_on(self, task: Task, ready: ReusableConnection) -> None:
        """With one that has started: it is our duty now, even if we are leaving."""
        self._hand.add(task, None)
        self._hand.mark_started(task)
        self.workers.begin_now(partial(self._errands.work, task, ready))

    def _begin(self, task: Task) -> None:
        self.workers.queue.put_nowait(partial(self._errands.work, task))

    def _prefetch_expired(self, task: Task) -> None:
        """The task before it takes long: another slot may be free for it."""
        if self._hand.detach(task):
            self._scribe.give_back(task)

    def _met(self, contact: Contact) -> None:
        self._scribe.contact(msgspec.to_builtins(contact))

    def _close(self) -> None:
        """Nothing new begins, and what has not begun goes back."""
        self.workers.set_open(open=False)
        for task in self._hand.release_unstarted():
            self._scribe.give_back(task)

    async def _wind_up(self) -> None:
        """Whatever still runs is stopped at its target and will run again; bounded, for we must go."""
        self._close()
        self._hand.cancel_all(HOST_STOPPED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_LIMIT):
                await self.workers.drain(DRAIN)
                await self._scribe.flushed()

    async def hurry(self) -> None:
        """Nothing is left to do: `run` has ended the registration."""

    def report(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "pid": os.getpid(),
            "version": VERSION,
            "epoch": self._store.epoch,
            "state": "starting",
            "slots": self.workers.slots,
            "running": self.workers.running,
        }
        if beat := self._beat:
            told |= {"state": beat.state, "paused": beat.paused, "draining": beat.draining}
        return told

    async def _renew(self) -> None:
        self._obey(await self._registration.renew(self.workers.running))

    async def _beat_on(self) -> None:
        away = False
        while True:
            self._asked.clear()
            try:
                await self._renew()
                away = False
            except FINAL:
                raise
            except Fault as fault:
                self.workers.set_open(open=False)  # nobody starts anything while it is away
                if not away:
                    log.warning("the control database is waited for", why=fault.message)
                away = True
            await self._clock.sleep_or(self._asked, self._bootstrap.heartbeat)

    def _obey(self, beat: HostState) -> None:
        if beat.slots != self.workers.slots:
            self.workers.resize(beat.slots)
        if beat.state == "draining":
            self._sent_off.set()
        closed = beat.paused or beat.draining or beat.state == "draining"
        if closed:
            self._close()
        self.workers.set_open(open=not (closed or self._leaving))
        self._beat = beat
