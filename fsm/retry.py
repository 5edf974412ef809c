"""The only place that decides when a failed step is retried, or that a retry can't help."""

import random
from datetime import timedelta

from muster.core.errors import (
    Conflict,
    Fault,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from muster.core.settings import Settings

# First pause in units of `retry_base`, doubled at each attempt; None: repeating cannot help.
FIRST: dict[type[Fault], float | None] = {
    Unavailable: 1,
    Conflict: 1,
    Throttled: 2,
    Internal: 5,
    InvalidRequest: None,
    Unauthenticated: None,
    Forbidden: None,
    NotFound: None,
    PreconditionFailed: None,
}


def after(error: Exception, attempt: int, settings: Settings) -> timedelta | None:
    """None: give up at once. Giving up on the rest is the deadline's business."""
    first = next((FIRST[kind] for kind in FIRST if isinstance(error, kind)), FIRST[Internal])
    return None if first is None else pause(attempt, settings, first)


def pause(attempt: int, settings: Settings, first: float = 1) -> timedelta:
    """Doubled, capped and jittered, so that many machines do not come back at the same moment."""
    doubled: float = first * 2 ** min(max(attempt - 1, 0), 10)
    jitter = random.uniform(0.5, 1.0)  # noqa: S311 - no secret
    return min(settings.retry_base * doubled, settings.retry_ceiling) * jitter
