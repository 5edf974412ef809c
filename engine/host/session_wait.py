"""How long a task waits for a session at its target, and for what reason.

The step's time counts from the task's first start, or from the first refusal by its server. The control database
decides whether the time is up: a host only reports a pause, after which the decision is due.
"""

from datetime import datetime
from typing import NamedTuple

from engine.model.reasons import REFUSED
from engine.model.step import Step
from engine.model.task import Task
from engine.pool.errors import Full

MIN_PAUSE, MAX_PAUSE = 1.0, 30.0  # seconds until a server that refused a connection is tried again
CLOCK_TOLERANCE = 0.1  # seconds between the monotonic clock and the wall clock


class WaitPause(NamedTuple):
    why: str  # a wait_reason
    seconds: float
    server_message: str | None


def left(step: Step, since: datetime | None, now: datetime) -> float:
    """Seconds of the step's time that are left; all of them before the first start."""
    return step.timeout_seconds - (now - (since or now)).total_seconds()


def pause(full: Full, step: Step, task: Task, now: datetime) -> WaitPause | None:
    """None: the task waited for our own limits, and has time to wait again."""
    if full.why in REFUSED:
        waited = (now - (task.tried_at or now)).total_seconds()
        seconds = min(MAX_PAUSE, max(MIN_PAUSE, waited))
        return WaitPause(full.why, seconds, full.server_message or None)
    since = task.first_start or task.tried_at
    if full.why == "NoHost" or left(step, since, now) > CLOCK_TOLERANCE:
        return None
    # By the control database's clock some time may be left; then the task is tried again, but not at once.
    return WaitPause(full.why, MIN_PAUSE, None)
