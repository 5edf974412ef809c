"""The seam between a host and what it runs: an executor runs tasks of one step and returns their outcomes.

There are two: `attempt.SingleTaskExecutor`, and `read_batch.ReadBatchExecutor` for several tasks that only read.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from engine.attempt.cancel_token import CancelToken
from engine.attempt.outcome import Outcome
from engine.attempt.row_spool import RowSpool
from engine.model.step import Step
from engine.model.task import Task
from engine.pool.pooled_connection import PooledConnection

# Commits the start of tasks before anything is sent; returns the invocations that must not run.
ReportStart = Callable[[Sequence[Task]], Awaitable[set[UUID]]]
# Records which transaction is about to commit. False: it must not commit; None: there was no reply in time.
ReportIntent = Callable[[Task, str], Awaitable[bool | None]]


class ExecutorTask(NamedTuple):
    task: Task
    token: CancelToken
    deadline: float  # of the loop's time


class ExecutorContext(NamedTuple):
    session: PooledConnection
    step: Step
    report_start: ReportStart
    report_intent: ReportIntent
    spool: RowSpool | None = None  # of a step with an output: one task


class Executor(Protocol):
    async def run(self, tasks: Sequence[ExecutorTask]) -> list[tuple[Task, Outcome]]:
        """The outcomes, without those of tasks that were refused; cancelling it closes the connection."""
