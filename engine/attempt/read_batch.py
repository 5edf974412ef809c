"""Read batches: several tasks that only read, pipelined on one session, with an outcome for each.

The tasks are first attempts of one step and have one login. None of them commits a write, so a batch may be
interrupted at any time: when one of its tasks has to stop, or the batch takes too long. A task without a reply by
then is retried on its own; the interrupted attempt does not count.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from uuid import UUID

from engine.attempt import session_setup
from engine.attempt.cancel_token import CANCELED, TIMED_OUT, CancelToken
from engine.attempt.canceller import CanceledError, SessionCanceller
from engine.attempt.executor import ExecutorContext, ExecutorTask
from engine.attempt.outcome import BROKEN_OFF, Outcome
from engine.attempt.script_run import LOCK_NOT_AVAILABLE, QUERY_CANCELED, ScriptRun
from engine.attempt.session_setup import SetupContext
from engine.attempt.stopwatch import Stopwatch
from engine.attempt.transaction_state import FAILED_TRANSACTION, IN_TRANSACTION, controlled
from engine.model.step import Step
from engine.model.task import UNLISTED, Task, application_name, variable_values
from engine.pgwire.pipeline import Pipeline, PipelinedQuery, QueryReply
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault

MAX_TASKS = 16
BATCH_TIMEOUT = 1.0  # seconds
CANCEL_TIMEOUT = 0.5  # seconds for each cancel method: the next task may need cancelling too
DIVISION_BY_ZERO = "22012"
# Divides by zero, which rolls back, when the transaction has an id, so it wrote something.
ASSERT_NOTHING_WRITTEN = (
    "\n;select where 0 operator(pg_catalog.=)"
    " (1 operator(pg_catalog./) pg_catalog.int4(pg_catalog.txid_current_if_assigned() is null))"
)
RETRIED_ALONE = (
    "The batch was interrupted; this task will be retried on its own. The attempt does not count."
)
NO_REPLY = QueryReply([], [], 0, 0, 0, None, 0.0)
MAX_UNBATCHABLE = 1000

StepKey = tuple[UUID, int, int]


class UnbatchableSteps:
    """Steps that a host learned not to batch: they write after all, or their results are large."""

    def __init__(self) -> None:
        self._keys: dict[StepKey, None] = {}

    def __contains__(self, task: Task) -> bool:
        return task.step_key in self._keys

    def add(self, task: Task) -> None:
        self._keys[task.step_key] = None
        if len(self._keys) > MAX_UNBATCHABLE:
            del self._keys[next(iter(self._keys))]


def may_batch(task: Task) -> bool:
    """Only first attempts: a task of an interrupted batch runs on its own."""
    return task.attempt == 1 and task.database_name is not None and UNLISTED not in task.labels


class ReadBatchExecutor:
    def __init__(self, context: ExecutorContext, unbatchable_steps: UnbatchableSteps) -> None:
        self._context = context
        self._unbatchable_steps = unbatchable_steps

    async def run(self, tasks: Sequence[ExecutorTask]) -> list[tuple[Task, Outcome]]:
        session, step, report_start, *_ = self._context
        stopwatch = Stopwatch(session)
        refused = await report_start([each.task for each in tasks])
        tasks = [each for each in tasks if each.task.invocation_id not in refused]
        if not tasks:
            return []
        stopwatch.begin_phase("running")
        token = CancelToken()
        name = application_name(tasks[0].task.invocation_id)
        for each in tasks:
            each.token.listen(partial(_forward, each.token, token))
        timer = session.loop.call_later(BATCH_TIMEOUT, token.cancel, BROKEN_OFF)
        try:
            deadline = min(each.deadline for each in tasks)
            with SessionCanceller(session, name, token, deadline, CANCEL_TIMEOUT) as canceller:
                sent_at = session.loop.time()
                pipeline = await _run_pipeline(session, tasks, step, canceller)
                results = [BatchResult(session, each, step, canceller) for each in tasks]
                _divide_time(stopwatch, sent_at, pipeline, results)
                outcomes = []
                for at, result in enumerate(results):
                    outcomes.append((result.task, await result.outcome(pipeline, at)))
                    if result.writes:
                        self._unbatchable_steps.add(result.task)
                return outcomes
        except BaseException:
            session.abandon()
            raise
        finally:
            timer.cancel()
            for each in tasks:
                each.token.listen(None)


def _forward(own: CancelToken, token: CancelToken) -> None:
    token.cancel(own.reason or BROKEN_OFF)


async def _run_pipeline(
    session: PooledConnection,
    tasks: Sequence[ExecutorTask],
    step: Step,
    canceller: SessionCanceller,
) -> Pipeline:
    try:
        queries = [_query(session, each, step) for each in tasks]
        canceller.mark_sent()
        return await session.run_pipeline(queries)
    except (Fault, CanceledError):  # each task, on its own, will report the reason
        return Pipeline(session.result_reader, (), session.loop)
    finally:
        canceller.mark_answered()


def _query(session: PooledConnection, entry: ExecutorTask, step: Step) -> PipelinedQuery:
    task = entry.task
    left = entry.deadline - session.loop.time()
    name = application_name(task.invocation_id)
    context = SetupContext(
        task, step, name, left, session.watches_client, session.preset, frozenset()
    )
    setup, (part,) = session_setup.transactional_setup(context), step.parts
    text = part.rendered(variable_values(task, step)) if part.varies else part.text
    more = "" if step.read_only else ASSERT_NOTHING_WRITTEN
    return PipelinedQuery(f"{step.banner}{setup.text};", text + more, setup.statements, _end(task))


def _end(task: Task) -> str:
    return "rollback" if task.rolls_back else "commit"


def _ended_transaction(reply: QueryReply) -> bool:
    """Whether the text ended the transaction of the setup; at most one query of ours follows the text."""
    failed = reply.failure is not None and reply.status == FAILED_TRANSACTION
    same = failed or reply.skipping or reply.status == IN_TRANSACTION
    return controlled(reply.sets) or not same


def _divide_time(
    stopwatch: Stopwatch, sent_at: float, pipeline: Pipeline, results: Sequence["BatchResult"]
) -> None:
    """A task has the time from the reply before its own; the first one also has the time before the batch."""
    times = [sent_at, *(reply.at for reply in pipeline.replies)]
    for result, (before, then) in zip(results, pairwise(times), strict=False):
        result.stopwatch.milliseconds["running"] = round((then - before) * 1000, 1)
    before_batch = {name: ms for name, ms in stopwatch.milliseconds.items() if name != "running"}
    results[0].stopwatch.milliseconds |= before_batch


class BatchStopwatch(Stopwatch):
    """Its times are set by `_divide_time`."""

    def __init__(self) -> None:
        self.milliseconds = {}

    def begin_phase(self, phase: str) -> None:
        """All phases have ended."""


class BatchTaskCanceller:
    """Whether one task of a batch is to stop."""

    def __init__(
        self, entry: ExecutorTask, batch: SessionCanceller, time: Callable[[], float]
    ) -> None:
        self._entry = entry
        self._batch = batch
        self._time = time

    @property
    def reason(self) -> str | None:
        return self._entry.token.reason or (TIMED_OUT if self.out_of_time() else None)

    @property
    def method(self) -> str | None:
        return self._batch.method if self.reason else None

    def out_of_time(self) -> bool:
        return self._time() >= self._entry.deadline

    def mark_sent(self) -> None:
        """The batch has finished: further queries are not cancelled."""

    def mark_answered(self) -> None:
        """See `mark_sent`."""


class BatchResult(ScriptRun):
    """One task of a batch that has finished."""

    writes = False  # although its text looks as if it only reads

    def __init__(
        self, session: PooledConnection, entry: ExecutorTask, step: Step, batch: SessionCanceller
    ) -> None:
        name = application_name(entry.task.invocation_id)
        own = BatchTaskCanceller(entry, batch, session.loop.time)
        super().__init__(session, entry.task, step, name, own, BatchStopwatch())
        self._batch = batch

    async def outcome(self, pipeline: Pipeline, at: int) -> Outcome:
        replies = pipeline.replies
        if at < len(replies):
            self.reply = replies[at]
            unclean = any(not each.clean for each in replies[:at])
            return await (self._retried_alone() if unclean else self._answered(replies[at]))
        if at > len(replies):
            self.reply = NO_REPLY  # the reader's content belongs to the task at len(replies)
        if self.canceller.reason:
            return await self.stopped(safe=True)
        if at > len(replies) or self._batch.reason or not self.session.lost:
            return await self._retried_alone()
        if abort := await self.client_side_abort():
            return abort
        return await self.connection_lost(pipeline.loss, reason="ConnectionLost", retry=True)

    async def _answered(self, reply: QueryReply) -> Outcome:
        error = reply.error
        if _ended_transaction(reply):
            return await self.ended_transaction()
        (self._part,) = self.step.parts
        self._offset = reply.offset
        if error is None and reply.tag == _end(self.task).upper():
            self.phase = "run" if self.step.read_only else "commit"
            self.completed = 1
            self.keep(reply.sets if self.step.read_only else reply.sets[:-1])
            return await self.succeeded()
        sqlstate = None if error is None else error.sqlstate
        if sqlstate == DIVISION_BY_ZERO and reply.sets:  # by ASSERT_NOTHING_WRITTEN
            self.writes = True
        elif error is not None and not self._needs_own_attempt(sqlstate, reply):
            return await self.failed(error, undone=True)
        return await self._retried_alone()

    def _needs_own_attempt(self, sqlstate: str | None, reply: QueryReply) -> bool:
        """An attempt of its own reports blockers or a failed check; or the cancel was meant for another task."""
        return (
            sqlstate == LOCK_NOT_AVAILABLE
            or (sqlstate == DIVISION_BY_ZERO and reply.skipping > 0)
            or (sqlstate == QUERY_CANCELED and self.canceller.reason is None)
        )

    async def _retried_alone(self) -> Outcome:
        return await self.ended(
            lifecycle=CANCELED,
            again=True,
            reason=BROKEN_OFF,
            message=RETRIED_ALONE,
            fingerprint=BROKEN_OFF,
        )
