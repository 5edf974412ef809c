"""Runs a step's script at one target, once, and knows afterwards whether it was committed.

Round trips of a script in a transaction: one for each statement, and COMMIT. The prologue goes along with the
first statement, the question for the transaction's id with the last one; where nothing is to be written the
end does.
"""

from collections.abc import Awaitable, Callable

from engine.alone import Alone
from engine.course import Course, Intend
from engine.found import UNLISTED
from engine.outcome import Outcome
from engine.prologue import application_name
from engine.session import Session
from engine.stop import Stopper
from engine.stopwatch import Stopwatch
from engine.together import Together
from engine.token import Token
from engine.work import Step, Task

NOT_VISITED = "The {} could not be listed when the step began, so its {} were not visited."
AGAIN = "It can be reached now: start a new run."
PASSING = {"TargetUnreachable", "TargetTimeout", ""}  # an older core does not say why


async def run(
    session: Session,
    task: Task,
    step: Step,
    *,
    start: Callable[[], Awaitable[bool]],
    intend: Intend,
    token: Token,
    deadline: float,
) -> Outcome | None:
    """None: the start or the intent to commit was refused, and nothing came of it.

    `deadline` is of the loop's time. Breaking this off hangs up on the target.
    """
    watch = Stopwatch(session)
    if not await start():
        return None
    name = application_name(task.invocation_id)
    with Stopper(session, name, token, deadline) as stop:
        means = (session, task, step, name, stop, watch)
        course = Alone(*means) if step.autocommit else Together(*means)
        try:
            if task.database_name is None or UNLISTED in task.labels:
                return await _unlisted(course, task)
            return await course.run(intend, deadline)
        except BaseException:
            session.abandon()
            raise
        finally:
            course.close()


async def _unlisted(course: Course, task: Task) -> Outcome:
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
