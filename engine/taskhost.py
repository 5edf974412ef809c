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

from engine.bootstrap import Bootstrap
from engine.budget import Contact
from engine.credentials import Credentials
from engine.ends import FINAL, Fenced, gravest
from engine.errands import Errands, Ready
from engine.hand import Hand
from engine.instance import HostBeat
from engine.lease import Lease
from engine.library import Library
from engine.life import any_of
from engine.line import Line
from engine.outcome import Outcome
from engine.registration import Registration
from engine.rings import PAUSES, TASKS
from engine.scribe import Scribe
from engine.sessions import Sessions
from engine.store import Store
from engine.token import HOST_STOPPED
from engine.work import Task
from engine.workers import Workers
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Connection, Row
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sql import Queries
from muster.core.version import VERSION

log = telemetry.get(__name__)
Q = Queries("engine", "road.sql")

POLL = timedelta(seconds=1)  # in case a wake-up was lost
DRAIN = timedelta(hours=24)  # for what runs when we are asked to go
STOP_LIMIT = 3.0  # seconds for what runs when we have to go
LONGEST_FOLLOW = 1.0  # seconds that a task waits for the one in whose place it begins


class JobTaskHost:
    def __init__(self, bootstrap: Bootstrap, store: Store, lease: Lease, clock: Clock) -> None:
        self.workers = Workers(bootstrap.slots)
        self._bootstrap = bootstrap
        self._id = bootstrap.start.id
        self._store = store
        self._registration = Registration(store, self._id, lease, clock)
        self._clock = clock
        self._beat: HostBeat | None = None
        self._sent_off = asyncio.Event()  # our own registration is draining
        self._leaving = False  # nothing new begins here any more
        self._rung = asyncio.Event()  # there may be something to take
        self._asked = asyncio.Event()  # what we must obey may be another now
        self._taking = asyncio.Lock()
        self._bell: Connection | None = None
        self._line = Line(store)
        self._library = Library(self._line, clock)
        self._hand = Hand()
        self._scribe = Scribe(store, self._id, clock, self._renew)
        credentials = Credentials.of(bootstrap, clock)
        self._sessions = Sessions(bootstrap.target_connector(), credentials, clock, self._met)
        self._errands = Errands(
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
            if self._bell is not None:
                self._bell.terminate()
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
            await self._listen()
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

    async def _taken(self, last: int, ready: Ready | None) -> list[Row]:
        try:
            rows = await self._said(last, ready)
        except Fenced:
            if ready is None:
                raise
            rows = await self._said(last, None)  # nothing begins by an epoch that has gone
        if rows:
            await reach("host.taken")
        return rows

    async def _said(self, last: int, ready: Ready | None) -> list[Row]:
        if ready is None:
            return await self._line.fetch(Q.take, self._id, last)
        which = (last, self._store.epoch, *ready.said)
        return await self._line.fetch(Q.take_and_start, self._id, *which)

    async def _listen(self) -> None:
        if self._bell is None or self._bell.is_closed():
            self._bell = await self._store.listen((TASKS, PAUSES), self._hear)

    def _hear(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        (self._rung if channel == TASKS else self._asked).set()

    def _accept(self, row: Any) -> None:
        if row["kind"] == "cancel":
            self._hand.cancel(row["invocation_id"])
            return
        task, leader = Task.of(row[4:]), row["leader"]
        if row["started"]:
            self._scribe.result(task, Outcome.unheard())
        elif self._leaving:
            self._scribe.give_back(task)
        elif self._hand.take(task, leader):
            loop = asyncio.get_running_loop()
            loop.call_later(LONGEST_FOLLOW, self._lose_patience, task)
        else:
            self._begin(task)

    def _go_on(self, task: Task, ready: Ready) -> None:
        """With one that has started: it is our duty now, even if we are leaving."""
        self._hand.take(task, None)
        self._hand.begin(task)
        self.workers.begin_now(partial(self._errands.work, task, ready))

    def _begin(self, task: Task) -> None:
        self.workers.queue.put_nowait(partial(self._errands.work, task))

    def _lose_patience(self, task: Task) -> None:
        """What it follows takes long: there may be room for it elsewhere."""
        if self._hand.unfollow(task):
            self._scribe.give_back(task)

    def _met(self, contact: Contact) -> None:
        self._scribe.contact(msgspec.to_builtins(contact))

    def _close(self) -> None:
        """Nothing new begins, and what has not begun goes back."""
        self.workers.set_open(open=False)
        for task in self._hand.drop():
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

    def _obey(self, beat: HostBeat) -> None:
        if beat.slots != self.workers.slots:
            self.workers.resize(beat.slots)
        if beat.state == "draining":
            self._sent_off.set()
        closed = beat.paused or beat.draining or beat.state == "draining"
        if closed:
            self._close()
        self.workers.set_open(open=not (closed or self._leaving))
        self._beat = beat
