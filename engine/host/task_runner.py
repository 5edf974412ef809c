"""Carries out what a host took: each task from its reservation to its outcome.

await errands.work(task)           # with those that can go along
ready = errands.ready()            # another one like the last could be sent at once
await errands.work(task, ready)    # such a one, whose start is committed already
errands.unready(ready)             # there was none
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from engine.attempt import attempt, read_batch
from engine.attempt.outcome import Outcome
from engine.attempt.read_batch import BatchTask
from engine.host import session_wait
from engine.host.definition_cache import DefinitionCache
from engine.host.reporter import Reporter
from engine.host.task_registry import TaskRegistry
from engine.model.task import Step, Task, as_login, at
from engine.pool.pool import ConnectionPool, Full
from engine.pool.pooled_connection import PooledConnection
from engine.process.exit_codes import FINAL
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach

log = telemetry.get(__name__)

INTENT_LIMIT = (
    5.0  # seconds that a COMMIT, and a tenant's locks, wait until it is known which one it is
)
LARGE_ANSWER = 256 * 1024  # bytes; those of a convoy are in memory together

Start = Callable[[], Awaitable[bool]]


class ReusableConnection(NamedTuple):
    """A session that is kept for another task of this step, at the same place."""

    like: Task
    step: Step
    session: PooledConnection

    @property
    def said(self) -> tuple[Any, ...]:
        """As take_and_start wants it."""
        like, session = self.like, self.session
        what = like.job_id, like.job_version, like.step_id
        return *what, *like.login, session.backend_pid, session.version


class TaskRunner:
    def __init__(
        self,
        hand: TaskRegistry,
        library: DefinitionCache,
        scribe: Reporter,
        sessions: ConnectionPool,
        clock: Clock,
        begin: Callable[[Task], None],
    ) -> None:
        self._hand = hand
        self._library = library
        self._scribe = scribe
        self._sessions = sessions
        self._clock = clock
        self._begin = begin  # when a worker is free
        self._last: Task | None = None

    def ready(self) -> ReusableConnection | None:
        """None: a session would have to be opened or waited for, or something to be read."""
        like = self._last
        if like is None or like.database_name is None:
            return None
        step, known = self._library.known_step(like), self._library.known(like)
        if step is None or known is None or step.refusal:
            return None
        _, server, who = known
        try:
            session = self._sessions.lend_idle(
                at(server, step), like.database_name, who, direct=step.needs_session
            )
        except Fault:  # it can't be reached in this way any more: whoever wants it is told
            return None
        return None if session is None else ReusableConnection(like, step, session)

    def unready(self, ready: ReusableConnection) -> None:
        self._sessions.lay_back(ready.session)

    async def work(self, task: Task, ready: ReusableConnection | None = None) -> None:
        """One task, and with it those that can go along."""
        tasks = [task]
        try:
            if ready is not None:
                await self._run(task, ready.step, ready.session, start=_started)
                return
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
            for follower in self._hand.finish(tasks):
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
        return self._hand.pop_batch(
            task, read_batch.MOST, lambda each: read_batch.may_batch(each) and each.login == login
        )

    async def _give_up(self, task: Task) -> None:
        """Somebody must hear of it, unless it was given back before."""
        if self._hand.give_up(task):
            await self._scribe.start(task, None, None)  # if it was not: said twice it is said once
            unknown = task.invocation_id in self._hand.intended
            self._scribe.result(task, Outcome.broken(unknown=unknown))

    async def _attempt(self, task: Task) -> None:
        if (found := await self._admitted([task])) is not None:
            step, session = found
            await self._run(task, step, session, start=partial(self._start, task, session))

    async def _run(
        self, task: Task, step: Step, session: PooledConnection, *, start: Start
    ) -> None:
        outcome = None
        try:
            outcome = await attempt.run(
                session,
                task,
                step,
                start=start,
                intend=partial(self._intend, task),
                token=self._hand.token(task),
                deadline=self._until(step, task.first_start),
            )
        finally:
            self._sessions.give_back(session)
        self._last = task
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
            BatchTask(task, self._hand.token(task), self._until(step, task.first_start))
            for task in tasks
        ]
        try:
            outcomes = await read_batch.run(
                session, riders, step, start=partial(self._start_all, tasks, session)
            )
        finally:
            self._sessions.give_back(session)
        await reach("host.finished")
        for task, outcome in outcomes:
            self._tell(step, task, outcome)

    async def _admitted(self, tasks: list[Task]) -> tuple[Step, PooledConnection] | None:
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
                self._scribe.give_back(
                    each, session_wait.pause(full, step, each, self._clock.now())
                )
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
        return self._clock.monotonic() + session_wait.left(step, since, self._clock.now())

    async def _session(self, task: Task, step: Step, deadline: float) -> PooledConnection:
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

    async def _start(self, task: Task, session: PooledConnection | None) -> bool:
        """Committed before anything is sent; an attempt may also come no further than to the door."""
        if not self._hand.mark_started(task):
            return False
        pid, version = (session.backend_pid, session.version) if session else (None, None)
        await reach("host.before_start")
        accepted = await self._scribe.start(task, pid, version)
        await reach("host.started")
        return accepted

    async def _start_all(self, tasks: list[Task], session: PooledConnection) -> set[UUID]:
        """The same for several; those of which nothing may be sent."""
        begun = [task for task in tasks if self._hand.mark_started(task)]
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


async def _started() -> bool:
    """When it was taken."""
    await reach("host.started")
    return True
