"""How long a task waits for a session at its target, and what it waits for when there was none.

Its time counts from its first start, or from when its server first refused us. Whether it is over is for the
control database to decide: a host only says that it has to, by a pause.
"""

from datetime import datetime
from typing import NamedTuple

from engine.model.reasons import REFUSED
from engine.model.task import Step, Task
from engine.pool.pool import Full

LEAST_WAIT, LONGEST_WAIT = 1.0, 30.0  # seconds before a server that refused us is tried again
MOMENT = 0.1  # seconds by which the clock that woke us may differ from the one on the wall


class WaitPause(NamedTuple):
    why: str  # a wait_reason
    seconds: float
    said: str | None  # by the server


def left(step: Step, since: datetime | None, now: datetime) -> float:
    """Seconds of the step's time; all of it where it has not begun."""
    return step.timeout_seconds - (now - (since or now)).total_seconds()


def pause(full: Full, step: Step, task: Task, now: datetime) -> WaitPause | None:
    """None: it only waited for us, and has the time to do so again."""
    if full.why in REFUSED:
        waited = (now - (task.tried_at or now)).total_seconds()
        seconds = min(LONGEST_WAIT, max(LEAST_WAIT, waited))
        return WaitPause(full.why, seconds, full.said or None)
    since = task.first_start or task.tried_at
    if full.why == "NoHost" or left(step, since, now) > MOMENT:
        return None
    # By another clock than ours it may have some time left; then it is asked again, but not at once.
    return WaitPause(full.why, LEAST_WAIT, None)
