"""Runs a step's script at one target, once, and knows afterwards whether it was committed.

Round trips of a script in a transaction: one for each statement, and COMMIT. The prologue goes along with the
first statement, the question for the transaction's id with the last one; where nothing is to be written the
end does.
"""

from collections.abc import Awaitable, Callable

from engine.attempt.autocommit import AutocommitRun
from engine.attempt.cancel_token import CancelToken
from engine.attempt.canceller import SessionCanceller
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import Intend, ScriptRun
from engine.attempt.stopwatch import Stopwatch
from engine.attempt.transactional import TransactionalRun
from engine.model.task import UNLISTED, Step, Task, application_name
from engine.pool.pooled_connection import PooledConnection

NOT_VISITED = "The {} could not be listed when the step began, so its {} were not visited."
AGAIN = "It can be reached now: start a new run."
PASSING = {"TargetUnreachable", "TargetTimeout", ""}  # an older core does not say why


async def run(
    session: PooledConnection,
    task: Task,
    step: Step,
    *,
    start: Callable[[], Awaitable[bool]],
    intend: Intend,
    token: CancelToken,
    deadline: float,
) -> Outcome | None:
    """None: the start or the intent to commit was refused, and nothing came of it.

    `deadline` is of the loop's time. Breaking this off hangs up on the target.
    """
    watch = Stopwatch(session)
    if not await start():
        return None
    name = application_name(task.invocation_id)
    with SessionCanceller(session, name, token, deadline) as stop:
        means = (session, task, step, name, stop, watch)
        course = AutocommitRun(*means) if step.autocommit else TransactionalRun(*means)
        try:
            if task.database_name is None or UNLISTED in task.labels:
                return await _unlisted(course, task)
            return await course.run(intend, deadline)
        except BaseException:
            session.abandon()
            raise
        finally:
            course.close()


async def _unlisted(course: ScriptRun, task: Task) -> Outcome:
    """We are at the server or database itself, since it did not tell what stands in it."""
    whole = task.database_name is None
    not_visited = NOT_VISITED.format(*("server", "databases") if whole else ("database", "schemas"))
    why = str(task.labels.get(UNLISTED, ""))
    code = why.partition(":")[0]
    if code in PASSING:
        return await course.refused(f"{not_visited} {AGAIN}", reason="ServerUnreachable")
    return await course.refused(
        f"{not_visited} {why}", reason="TargetsUnresolved", fingerprint=code
    )
