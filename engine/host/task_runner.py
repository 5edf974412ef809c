"""Runs the tasks that a host holds, each from its reservation to its outcome.

await runner.run(task)                     # with prefetched tasks that can share a read batch
connection = runner.borrow_idle()          # for another task like the last one
await runner.run(task, connection)         # such a task; its start is committed already
runner.return_unused(connection)           # there was none
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from engine.attempt import read_batch, verification
from engine.attempt.attempt import SingleTaskExecutor
from engine.attempt.executor import Executor, ExecutorContext, ExecutorTask, ReportStart
from engine.attempt.outcome import Outcome
from engine.attempt.output_phase import OutputPhase, resumed
from engine.attempt.read_batch import ReadBatchExecutor, UnbatchableSteps
from engine.attempt.row_spool import SpoolFolder
from engine.host import session_wait
from engine.host.definition_cache import DefinitionCache
from engine.host.reporter import Reporter
from engine.host.task_registry import TaskRegistry
from engine.model.step import Step
from engine.model.task import Task, variable_values
from engine.model.verification import VERIFIED
from engine.pool.errors import Full
from engine.pool.pool import ConnectionPool
from engine.pool.pooled_connection import PooledConnection
from engine.process.exit_codes import FINAL
from engine.process.metrics import HostMetrics
from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Fault, InvalidRequest
from muster.core.failpoints import reach

log = telemetry.get(__name__)

INTENT_TIMEOUT = 5.0  # seconds that a COMMIT, and a tenant's locks, wait for the commit intent
LARGE_RESULT = 256 * 1024  # bytes; the results of a read batch are in memory together


class ReusableConnection(NamedTuple):
    """An idle session that is reserved for another task of this step, with the same login."""

    last: Task
    step: Step
    session: PooledConnection

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Of the query take_and_start."""
        last, session = self.last, self.session
        return *last.step_key, *last.login, session.backend_pid, session.version


class TaskRunner:
    def __init__(
        self,
        registry: TaskRegistry,
        definitions: DefinitionCache,
        reporter: Reporter,
        pool: ConnectionPool,
        clock: Clock,
        enqueue: Callable[[Task], None],
        spools: SpoolFolder,
        *,
        metrics: HostMetrics | None = None,
        batch_reads: bool = True,
    ) -> None:
        self.unbatchable_steps = UnbatchableSteps()
        self._registry = registry
        self._definitions = definitions
        self._reporter = reporter
        self._pool = pool
        self._clock = clock
        self._enqueue = enqueue  # for the next free worker
        self._metrics = metrics or HostMetrics()
        self._batch_reads = batch_reads
        self._outputs = OutputPhase(spools, definitions.output_place, pool, self._report_intent)
        self._last: Task | None = None

    def borrow_idle(self) -> ReusableConnection | None:
        """None: a session or a definition would have to be waited for."""
        last = self._last
        if last is None or last.database_name is None or last.has_own_options:
            return None
        step, login = self._definitions.cached_step(last), self._definitions.cached_login(last)
        if step is None or login is None or step.refusal or step.output:
            return None
        _, server, credential = login
        server = server.for_access(step.options.settings.access)
        try:
            session = self._pool.lend_idle(
                server, last.database_name, credential, direct=step.needs_session
            )
        except Fault:  # the step can't use this server any more: its next task will report why
            return None
        return None if session is None else ReusableConnection(last, step, session)

    def return_unused(self, connection: ReusableConnection) -> None:
        self._pool.return_unused(connection.session)

    async def run(self, task: Task, connection: ReusableConnection | None = None) -> None:
        tasks = [task]
        try:
            if connection is not None:
                _, step, session = connection
                await self._execute(tasks, step, session, report_start=_start_is_committed)
            else:
                tasks = self._batch(task)
                if len(tasks) > 1 or self._registry.is_wanted(task):
                    await self._admit_and_execute(tasks)
        except FINAL:
            raise
        except Exception:
            log.exception("attempt failed", run=task.job_execution_id, ordinal=task.ordinal)
            for each in tasks:
                await self._report_internal_error(each)
        finally:
            for following in self._registry.finish(tasks):
                self._enqueue(following)

    def _batch(self, task: Task) -> list[Task]:
        """The task, with the tasks of its slot that can share a read batch with it."""
        step, login = self._definitions.cached_step(task), self._definitions.cached_login(task)
        if not self._batch_reads or step is None or login is None:
            return [task]
        if not step.batchable or task in self.unbatchable_steps:
            return [task]
        _, server, credential = login
        if server.pooling == "transaction" or "$(" in credential.username:
            return [task]
        return self._registry.pop_batch(
            task,
            read_batch.MAX_TASKS,
            lambda each: (
                read_batch.may_batch(each)
                and each.login == task.login
                and each.definition_key == task.definition_key
            ),
        )

    async def _report_internal_error(self, task: Task) -> None:
        """Unless the task was released."""
        if self._registry.give_up(task):
            await self._reporter.started([task], None, None)  # reports are idempotent
            unknown = task.invocation_id in self._registry.intended or task.script_outcome
            self._reporter.finished(task, Outcome.internal_error(unknown=bool(unknown)))

    async def _admit_and_execute(self, tasks: list[Task]) -> None:
        if tasks[0].script_outcome == VERIFIED:
            await self._resume_output(tasks[0])
            return
        if (admission := await self._admit(tasks)) is None:
            return
        step, session = admission
        if len(tasks) > 1 and not session.result_reader.standard_strings:
            # The server parses a whole message before it executes the first SET in it.
            self.unbatchable_steps.add(tasks[0])
            self._pool.give_back(session)
            for task in tasks:
                if self._registry.give_up(task):
                    self._reporter.released(task)
            return
        await self._execute(
            tasks, step, session, report_start=partial(self._report_start, session=session)
        )

    async def _resume_output(self, task: Task) -> None:
        """Needs no session at the target: only the output is left to write."""
        if (step := await self._step(task)) is None or await self._report_start([task], None):
            return
        since = task.first_start or task.tried_at
        entry = ExecutorTask(task, self._registry.token(task), self._deadline(step, since))
        await self._finish(entry, step, resumed())

    async def _step(self, task: Task) -> Step | None:
        """None: the control database is unavailable, and the task was released."""
        try:
            return self._definitions.cached_step(task) or await self._definitions.step(task)
        except FINAL:
            raise
        except Fault as fault:
            log.info("can't read a step", why=fault.message)
            self._reporter.released(task)
            return None

    async def _finish(self, entry: ExecutorTask, step: Step, outcome: Outcome) -> None:
        """Reports the outcome after the output, if there is one; its session follows that of the target."""
        final = await self._outputs.after(entry, step, outcome)
        await reach("host.finished")
        if final is not None:
            self._metrics.attempt_ended(final.timings)
            self._reporter.finished(entry.task, final)

    async def _execute(
        self,
        tasks: Sequence[Task],
        step: Step,
        session: PooledConnection,
        *,
        report_start: ReportStart,
    ) -> None:
        executor_tasks = [
            ExecutorTask(task, self._registry.token(task), self._deadline(step, task.first_start))
            for task in tasks
        ]
        spool = self._outputs.spool(tasks[0], step)
        context = ExecutorContext(session, step, report_start, self._report_intent, spool)
        try:
            outcomes = await self._executor(context, tasks).run(executor_tasks)
        finally:
            self._pool.give_back(session)
        if len(tasks) == 1:
            self._last = tasks[0]
        if step.output is not None:
            for entry, (_, outcome) in zip(executor_tasks, outcomes, strict=False):
                await self._finish(entry, step, outcome)
            return
        await reach("host.finished")
        for task, outcome in outcomes:
            if outcome.bytes > LARGE_RESULT:
                self.unbatchable_steps.add(task)
            self._metrics.attempt_ended(outcome.timings)
            self._reporter.finished(task, outcome)

    def _executor(self, context: ExecutorContext, tasks: Sequence[Task]) -> Executor:
        if len(tasks) > 1:
            return ReadBatchExecutor(context, self.unbatchable_steps)
        return SingleTaskExecutor(context)

    async def _admit(self, tasks: list[Task]) -> tuple[Step, PooledConnection] | None:
        """The step and a session that all tasks can use; None: the tasks were reported on or released."""
        retry_on: tuple[str, ...] = ()
        task = tasks[0]
        try:
            step = self._definitions.cached_step(task) or await self._definitions.step(task)
            if step.refusal:
                raise InvalidRequest(step.refusal, code="ScriptRefused")
            retry_on = step.options.retry_on
            deadline = self._deadline(step, task.first_start or task.tried_at)
            return step, await self._session(task, step, deadline)
        except Full as full:
            for each in tasks:
                pause = session_wait.pause(full, step, each, self._clock.now())
                self._reporter.released(each, pause)
        except FINAL:
            raise
        except Fault as fault:
            if fault.code == "ControlDatabaseUnavailable":
                for each in tasks:
                    self._reporter.released(each)
                return None
            refused = await self._report_start(tasks, None)
            for each in tasks:
                if each.invocation_id not in refused:
                    outcome = Outcome.of_connect(fault, retry_on)
                    self._reporter.finished(each, verification.not_asked(outcome, each))
        return None

    def _deadline(self, step: Step, since: datetime | None) -> float:
        """Of the monotonic clock; the step's time counts from the first start or try."""
        return self._clock.monotonic() + session_wait.left(step, since, self._clock.now())

    async def _session(self, task: Task, step: Step, deadline: float) -> PooledConnection:
        login = self._definitions.cached_login(task)
        if login is None:
            identity, server = await self._definitions.server(task)
            login = identity, server, await self._definitions.credential(task)
        identity, server, credential = login
        if "$(" in credential.username:
            credential = credential.with_variables(variable_values(task, step))
        return await self._pool.lend(
            server.for_access(step.options.settings.access),
            task.database_name or server.maintenance_database,
            credential,
            identity,
            direct=step.needs_session,
            deadline=deadline,
        )

    async def _report_start(
        self, tasks: Sequence[Task], session: PooledConnection | None
    ) -> set[UUID]:
        """Commits the start; returns the invocations that must not run. Without a session nothing will be sent."""
        started = [task for task in tasks if self._registry.mark_started(task)]
        released = {task.invocation_id for task in tasks}
        released -= {task.invocation_id for task in started}
        if not started:
            return released
        pid, version = (session.backend_pid, session.version) if session else (None, None)
        await reach("host.before_start")
        refused = await self._reporter.started(started, pid, version)
        await reach("host.started")
        return refused | released

    async def _report_intent(self, task: Task, xact_id: str) -> bool | None:
        """False: the intent is refused; None: there was no reply in time. Neither may commit."""
        reply = asyncio.ensure_future(self._reporter.commit_intent(task, xact_id))
        done, _ = await asyncio.wait({reply}, timeout=INTENT_TIMEOUT)
        await reach("host.intended")
        if not done:
            return None
        self._registry.intended.add(task.invocation_id)
        return not reply.result()


async def _start_is_committed(tasks: Sequence[Task]) -> set[UUID]:  # noqa: ARG001 - a ReportStart
    """By the statement that fetched the task."""
    await reach("host.started")
    return set()
