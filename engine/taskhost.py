"""JobTaskHost: registers with the engine in charge, lends it workers, and outlives it.

A core that dies changes nothing here: the next epoch adopts the registration, and from then on the host
writes with that epoch. It ends when it is refused, when a newer epoch did not adopt it, when its own
registration is over or draining, or when it could not renew for all of its patience.
"""

import asyncio
import contextlib
import os
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from engine import attempt, convoy, pauses
from engine.bootstrap import Bootstrap
from engine.budget import Contact
from engine.convoy import Rider
from engine.credentials import Credentials
from engine.ends import FINAL, gravest
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
from engine.session import Session
from engine.sessions import Full, Sessions
from engine.store import Store
from engine.token import HOST_STOPPED
from engine.work import Step, Task, as_login, at
from engine.workers import Workers
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Connection
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach
from muster.core.sql import Queries
from muster.core.version import VERSION

log = telemetry.get(__name__)
Q = Queries("engine", "road.sql")

POLL = timedelta(seconds=1)  # in case a wake-up was lost
DRAIN = timedelta(hours=24)  # for what runs when we are asked to go
INTENT_LIMIT = (
    5.0  # seconds that a COMMIT, and a tenant's locks, wait until it is known which one it is
)
STOP_LIMIT = 3.0  # seconds for what runs when we have to go
LARGE_ANSWER = 256 * 1024  # bytes; those of a convoy are in memory together
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
        self._bell: Connection | None = None
        self._line = Line(store)
        self._library = Library(self._line, clock)
        self._hand = Hand()
        self._scribe = Scribe(store, self._id, clock, self._renew)
        credentials = Credentials.of(bootstrap, clock)
        self._sessions = Sessions(bootstrap.settings(), credentials, clock, self._met)

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
            self._rung.clear()
            try:
                await self._listen()
                rows = await self._line.fetch(Q.take, self._id, last)
                if rows:
                    await reach("host.taken")
                for row in rows:
                    last = max(last, row["number"])
                    self._accept(row)
            except FINAL:
                raise
            except Fault as fault:
                log.debug("nothing can be taken", why=fault.message)
            await self._clock.sleep_or(self._rung, POLL)

    async def _listen(self) -> None:
        if self._bell is None or self._bell.is_closed():
            self._bell = await self._store.listen((TASKS, PAUSES), self._hear)

    def _hear(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        (self._rung if channel == TASKS else self._asked).set()

    def _accept(self, row: Any) -> None:
        if row["kind"] == "cancel":
            self._hand.cancel(row["invocation_id"])
            return
        task, leader = Task.of(row[2:]), row["leader"]
        if self._leaving:
            self._scribe.give_back(task)
        elif self._hand.take(task, leader):
            loop = asyncio.get_running_loop()
            loop.call_later(LONGEST_FOLLOW, self._lose_patience, task)
        else:
            self._begin(task)

    def _begin(self, task: Task) -> None:
        self.workers.queue.put_nowait(partial(self._work, task))

    def _lose_patience(self, task: Task) -> None:
        """What it follows takes long: there may be room for it elsewhere."""
        if self._hand.unfollow(task):
            self._scribe.give_back(task)

    async def _work(self, task: Task) -> None:
        """One task from its reservation to its outcome, and with it those that can go along."""
        tasks = [task]
        try:
            tasks = self._gathered(task)
            if len(tasks) > 1:
                await self._attempt_together(tasks)
            elif self._hand.is_wanted(task):
                await self._attempt(task)
        except FINAL:
            raise
        except Exception:
            log.exception("an attempt broke down", run=task.job_execution_id, ordinal=task.ordinal)
            for each in tasks:
                await self._give_up(each)
        finally:
            for follower in self._hand.lay_down(tasks):
                self._begin(follower)

    def _gathered(self, task: Task) -> list[Task]:
        """With those that follow it and can go to their database in one breath with it."""
        step, known = self._library.known_step(task), self._library.known(task)
        if step is None or known is None or not step.goes_along:
            return [task]
        _, server, who = known
        if server.pooling == "transaction" or "$(" in who.username:
            return [task]
        login = task.login
        return self._hand.gather(
            task, convoy.MOST, lambda each: convoy.may_ride(each) and each.login == login
        )

    async def _give_up(self, task: Task) -> None:
        """Somebody must hear of it, unless it was given back before."""
        if self._hand.give_up(task):
            await self._scribe.start(task, None, None)  # if it was not: said twice it is said once
            unknown = task.invocation_id in self._hand.intended
            self._scribe.result(task, Outcome.broken(unknown=unknown))

    async def _attempt(self, task: Task) -> None:
        if (found := await self._admitted([task])) is None:
            return
        step, session = found
        outcome = None
        try:
            outcome = await attempt.run(
                session,
                task,
                step,
                start=partial(self._start, task, session),
                intend=partial(self._intend, task),
                token=self._hand.token(task),
                deadline=self._until(step, task.first_start),
            )
        finally:
            self._sessions.give_back(session)
        await reach("host.finished")
        if outcome is not None:
            self._tell(step, task, outcome)

    def _tell(self, step: Step, task: Task, outcome: Outcome) -> None:
        if outcome.bytes > LARGE_ANSWER:
            step.goes_alone()
        self._scribe.result(task, outcome)

    async def _attempt_together(self, tasks: list[Task]) -> None:
        """As each by itself; where that is not so simple, they go back, and each by itself."""
        if (found := await self._admitted(tasks)) is None:
            return
        step, session = found
        if not session.ear.standard_strings:  # a message is read as a whole before its first SET
            step.goes_alone()
            self._sessions.give_back(session)
            for task in tasks:
                if self._hand.give_up(task):
                    self._scribe.give_back(task)
            return
        riders = [
            Rider(task, self._hand.token(task), self._until(step, task.first_start))
            for task in tasks
        ]
        try:
            outcomes = await convoy.run(
                session, riders, step, start=partial(self._start_all, tasks, session)
            )
        finally:
            self._sessions.give_back(session)
        await reach("host.finished")
        for task, outcome in outcomes:
            self._tell(step, task, outcome)

    async def _admitted(self, tasks: list[Task]) -> tuple[Step, Session] | None:
        """A session that all of them can use; None: they were told why there is none."""
        retry_on: tuple[str, ...] = ()
        task = tasks[0]
        try:
            step = self._library.known_step(task) or await self._library.step(task)
            if step.refusal:
                raise InvalidRequest(step.refusal, code="ScriptRefused")
            retry_on = step.options.retry_on
            until = self._until(step, task.first_start or task.tried_at)
            return step, await self._session(task, step, until)
        except Full as full:
            for each in tasks:
                self._scribe.give_back(each, pauses.pause(full, step, each, self._clock.now()))
        except FINAL:
            raise
        except Fault as fault:
            away = fault.code == "ControlDatabaseUnavailable"
            for each in tasks:
                if away:
                    self._scribe.give_back(each)
                elif await self._start(each, None):
                    self._scribe.result(each, Outcome.of_connect(fault, retry_on))
        return None

    def _until(self, step: Step, since: datetime | None) -> float:
        """By our own clock: when the step's time is over, which counts from the first start or try."""
        return self._clock.monotonic() + pauses.left(step, since, self._clock.now())

    async def _session(self, task: Task, step: Step, deadline: float) -> Session:
        known = self._library.known(task)
        if known is None:
            identity, server = await self._library.server(task)
            known = identity, server, await self._library.credential(task)
        identity, server, credential = known
        who = as_login(credential, task, step)
        database = task.database_name or server.maintenance_database
        return await self._sessions.lend(
            at(server, step), database, who, identity, direct=step.needs_session, deadline=deadline
        )

    async def _start(self, task: Task, session: Session | None) -> bool:
        """Committed before anything is sent; an attempt may also come no further than to the door."""
        if not self._hand.begin(task):
            return False
        pid, version = (session.backend_pid, session.version) if session else (None, None)
        await reach("host.before_start")
        accepted = await self._scribe.start(task, pid, version)
        await reach("host.started")
        return accepted

    async def _start_all(self, tasks: list[Task], session: Session) -> set[UUID]:
        """The same for several; those of which nothing may be sent."""
        begun = [task for task in tasks if self._hand.begin(task)]
        ours = {task.invocation_id for task in begun}
        given_back = {task.invocation_id for task in tasks} - ours
        if not begun:
            return given_back
        await reach("host.before_start")
        refused = await self._scribe.start_all(begun, session.backend_pid, session.version)
        await reach("host.started")
        return refused | given_back

    async def _intend(self, task: Task, xact_id: str) -> bool | None:
        """None: nobody could be told in time, so nothing may be committed."""
        said = asyncio.ensure_future(self._scribe.intend(task, xact_id))
        done, _ = await asyncio.wait({said}, timeout=INTENT_LIMIT)
        await reach("host.intended")
        if not done:
            return None
        self._hand.intended.add(task.invocation_id)
        return said.result()

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
