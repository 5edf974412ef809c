"""JobTaskHost: registers with the engine in charge, runs its tasks, and outlives it.

When a core dies, the host continues: the next epoch adopts the registration, and from then on the host writes with
that epoch. The host ends when it is refused, when a newer epoch did not adopt it, when its registration has ended or
is draining, or when it could not renew its lease in time.
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
from engine.attempt.row_spool import SpoolFolder
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.db.membership import HostState
from engine.db.notifier import Notifier
from engine.db.wakeups import PAUSES, TASKS
from engine.host.definition_cache import DefinitionCache
from engine.host.registration import Registration
from engine.host.reporter import Reporter
from engine.host.spool_cleaner import SpoolCleaner
from engine.host.task_registry import TaskRegistry
from engine.host.task_runner import ReusableConnection, TaskRunner
from engine.host.workers import Workers
from engine.model.task import PREFETCH_LIMIT, Task
from engine.pool.budget import Contact
from engine.pool.pool import ConnectionPool
from engine.process.bootstrap import Bootstrap
from engine.process.exit_codes import FINAL, Fenced, most_severe
from engine.process.lease import Lease
from engine.process.lifecycle import any_of
from engine.process.metrics import HostMetrics
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import Row
from muster.core.errors import Fault
from muster.core.failpoints import reach
from muster.core.sql import Queries
from muster.core.version import VERSION

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "executions.sql")

POLL_INTERVAL = timedelta(seconds=1)  # in case a wake-up was lost
DRAIN_TIMEOUT = timedelta(hours=24)
STOP_TIMEOUT = 3.0  # seconds


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
        self._state: HostState | None = None
        self._draining = asyncio.Event()  # the registration is draining
        self._leaving = False  # no task starts any more
        self._tasks_notified = asyncio.Event()  # there may be tasks to fetch
        self._state_notified = asyncio.Event()  # the wanted state may have changed
        self._fetching = asyncio.Lock()
        self._notifier = Notifier(store, self._notified)
        self._connection = ControlConnection(store)
        self._definitions = DefinitionCache(self._connection, clock)
        self._registry = TaskRegistry()
        self._reporter = Reporter(store, self._id, clock, self._renew)
        credentials = Credentials.of(bootstrap, clock)
        self._pool = ConnectionPool(
            bootstrap.target_connector(), credentials, clock, self._on_contact
        )
        self._spools = SpoolFolder(
            bootstrap.spool_folder, bootstrap.workload_settings.output_spool_size
        )
        self._metrics = HostMetrics()
        self._task_runner = TaskRunner(
            self._registry,
            self._definitions,
            self._reporter,
            self._pool,
            clock,
            self._enqueue,
            self._spools,
            metrics=self._metrics,
            batch_reads=bootstrap.workload_settings.batch_reads,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` and a drain, or until something final happens."""
        if not await self._registration.begin(self.workers.slots, stop):
            return
        log.info("host registered", epoch=self._store.epoch, slots=self.workers.slots)
        try:
            async with asyncio.TaskGroup() as group:
                loops = [
                    group.create_task(each())
                    for each in (
                        self.workers.run,
                        self._send_heartbeats,
                        self._reporter.run,
                        self._fetch_tasks,
                        SpoolCleaner(self._spools, self._connection, self._clock).run,
                    )
                ]
                try:
                    await any_of(stop, self._draining)
                    self._leaving = True
                    self._close()
                    await self._await_fetch()
                    await self._registration.leave()
                    await self.workers.drain(DRAIN_TIMEOUT)
                finally:
                    await self._stop_running()
                    for each in loops:
                        each.cancel()
        except BaseExceptionGroup as several:
            raise most_severe(several) from None
        finally:
            self._connection.disconnect()
            self._notifier.close()
            await asyncio.gather(self._pool.close(), self._registration.end())

    async def _fetch_tasks(self) -> None:
        """Fetches dispatches in their order, each once."""
        last = 0
        while True:
            notified = self._tasks_notified.is_set()
            self._tasks_notified.clear()
            async with self._fetching:
                last = await self._fetch(last, notified=notified)
            await self._clock.sleep_or(self._tasks_notified, POLL_INTERVAL)

    async def _fetch(self, last: int, *, notified: bool) -> int:
        """The dispatches after that number; returns the last number."""
        connection = self._task_runner.borrow_idle() if notified and self._is_idle else None
        try:
            await self._notifier.ensure_listening((TASKS, PAUSES))
            for row in await self._rows(last, connection):
                last = max(last, row["number"])
                if row["begun"] and connection is not None:
                    self._run_started(Task.of(row), connection)
                    connection = None
                else:
                    self._accept(row)
        except FINAL:
            raise
        except Fault as fault:
            log.debug("can't fetch tasks", why=fault.message)
        finally:
            if connection is not None:
                self._task_runner.return_unused(connection)
        return last

    async def _await_fetch(self) -> None:
        """A fetch in progress may start a task, which the host then has to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT), self._fetching:
                pass

    @property
    def _is_idle(self) -> bool:
        return self.workers.is_open and not self._registry

    async def _rows(self, last: int, connection: ReusableConnection | None) -> list[Row]:
        try:
            rows = await self._query(last, connection)
        except Fenced:
            if connection is None:
                raise
            rows = await self._query(last, None)  # an older epoch can't start a task
        if rows:
            await reach("host.taken")
        return rows

    async def _query(self, last: int, connection: ReusableConnection | None) -> list[Row]:
        if connection is None:
            return await self._connection.fetch(Q.take, self._id, last)
        arguments = (last, self._store.epoch, *connection.arguments)
        return await self._connection.fetch(Q.take_and_start, self._id, *arguments)

    def _notified(self, channel: str) -> None:
        (self._tasks_notified if channel == TASKS else self._state_notified).set()

    def _accept(self, row: Any) -> None:
        if row["kind"] == "cancel":
            self._registry.cancel(row["invocation_id"])
            return
        task = Task.of(row)
        if row["started"]:
            self._reporter.finished(task, Outcome.start_unconfirmed())
        elif self._leaving:
            self._reporter.released(task)
        elif self._registry.add(task, row["slot"]):
            loop = asyncio.get_running_loop()
            loop.call_later(PREFETCH_LIMIT, self._prefetch_expired, task)
        else:
            self._enqueue(task)

    def _run_started(self, task: Task, connection: ReusableConnection) -> None:
        """A task that was started by its fetch: the host must run it, even while it is leaving."""
        self._registry.add(task, None)
        self._registry.mark_started(task)
        self.workers.run_now(partial(self._task_runner.run, task, connection))

    def _enqueue(self, task: Task) -> None:
        self.workers.queue.put_nowait(partial(self._task_runner.run, task))

    def _prefetch_expired(self, task: Task) -> None:
        """The task before it takes long: another slot may be free for this one."""
        if self._registry.detach(task):
            self._reporter.released(task)

    def _on_contact(self, contact: Contact) -> None:
        self._reporter.server_seen(msgspec.to_builtins(contact))

    def _close(self) -> None:
        """No task starts any more; tasks that have not started are released."""
        self.workers.set_open(open=False)
        for task in self._registry.release_unstarted():
            self._reporter.released(task)

    async def _stop_running(self) -> None:
        """Stops running tasks at their targets, within a time limit; they will run again elsewhere."""
        self._close()
        self._registry.cancel_all(HOST_STOPPED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_TIMEOUT):
                await self.workers.drain(DRAIN_TIMEOUT)
                await self._reporter.flushed()

    async def hurry(self) -> None:
        """`run` ends the registration: there is nothing to do."""

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = {
            "pid": os.getpid(),
            "version": VERSION,
            "epoch": self._store.epoch,
            "state": "starting",
            "slots": self.workers.slots,
            "running": self.workers.running,
            "metrics": self._metrics.report(self._pool.sessions()),
        }
        if state := self._state:
            report |= {"state": state.state, "paused": state.paused, "draining": state.draining}
        return report

    async def _renew(self) -> None:
        self._apply(await self._registration.renew(self.workers.running))

    async def _send_heartbeats(self) -> None:
        unavailable = False
        while True:
            self._state_notified.clear()
            try:
                await self._renew()
                unavailable = False
            except FINAL:
                raise
            except Fault as fault:
                self.workers.set_open(open=False)  # no task starts while it is unavailable
                if not unavailable:
                    log.warning("waiting for the control database", why=fault.message)
                unavailable = True
            await self._clock.sleep_or(self._state_notified, self._bootstrap.heartbeat)

    def _apply(self, state: HostState) -> None:
        if state.slots != self.workers.slots:
            self.workers.resize(state.slots)
        if state.state == "draining":
            self._draining.set()
        closed = state.paused or state.draining or state.state == "draining"
        if closed:
            self._close()
        self.workers.set_open(open=not (closed or self._leaving))
        self._state = state
