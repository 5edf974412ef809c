"""Runs a step's script at one target, once, and determines whether it was committed.

Round trips of a script in a transaction: one for each statement, and COMMIT. The setup is sent with the first
statement, the query for the transaction's id with the last one; a script that only reads ends its transaction in the
message of the last statement.
"""

from collections.abc import Sequence
from functools import partial

from engine.attempt.autocommit import AutocommitRun
from engine.attempt.canceller import SessionCanceller
from engine.attempt.executor import ExecutorContext, ExecutorTask
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import ScriptRun
from engine.attempt.stopwatch import Stopwatch
from engine.attempt.transactional import TransactionalRun
from engine.model.task import UNLISTED, Task, application_name

NOT_VISITED = "The {} could not be listed when the step began, so its {} were not visited."
NOW_REACHABLE = (
    "It can be reached now and is listed before the next attempt; after the last one, rerun it."
)
TRANSIENT_CODES = {"TargetUnreachable", "TargetTimeout", ""}  # an older core records no code


class SingleTaskExecutor:
    def __init__(self, context: ExecutorContext) -> None:
        self._context = context

    async def run(self, tasks: Sequence[ExecutorTask]) -> list[tuple[Task, Outcome]]:
        (entry,) = tasks
        outcome = await self._run(entry)
        return [] if outcome is None else [(entry.task, outcome)]

    async def _run(self, entry: ExecutorTask) -> Outcome | None:
        """None: the start or the commit intent was refused, and nothing was committed."""
        session, step, report_start, report_intent, spool = self._context
        task = entry.task
        stopwatch = Stopwatch(session)
        if await report_start([task]):
            return None
        name = application_name(task.invocation_id)
        with SessionCanceller(session, name, entry.token, entry.deadline) as canceller:
            kind = AutocommitRun if step.autocommit else TransactionalRun
            run = kind(
                session, task, step, name, canceller, stopwatch,
                deadline=entry.deadline, report_intent=partial(report_intent, task),
                spool=spool,
            )  # fmt: skip
            try:
                if task.database_name is None or UNLISTED in task.labels:
                    return await _unlisted(run, task)
                return await run.run()
            except BaseException:
                session.abandon()
                raise
            finally:
                run.close()
                if spool is not None:
                    spool.close_file()


async def _unlisted(run: ScriptRun, task: Task) -> Outcome:
    """The task stands for the databases of a server, or the schemas of a database, that could not be listed."""
    is_server = task.database_name is None
    what = ("server", "databases") if is_server else ("database", "schemas")
    not_visited = NOT_VISITED.format(*what)
    why = str(task.labels.get(UNLISTED, ""))
    code = why.partition(":")[0]
    if code in TRANSIENT_CODES:
        message = f"{not_visited} {NOW_REACHABLE}"
        return await run.rejected_by_us(message, reason="ServerUnreachable", retry=True)
    return await run.rejected_by_us(
        f"{not_visited} {why}", reason="TargetsUnresolved", fingerprint=code
    )
