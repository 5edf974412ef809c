"""Intervals of a schedule: ISO 8601 text to a type and a count, and back.

`parse("PT1H30M")` is `(IntervalType.MINUTES, 90)`; `text(IntervalType.MINUTES, 90)` is "PT1H30M".
"""

import re
from datetime import timedelta
from enum import StrEnum

from muster.core.errors import InvalidRequest

CODE = "InvalidDuration"


class IntervalType(StrEnum):
    MINUTES = "Minutes"
    HOURS = "Hours"
    DAYS = "Days"
    WEEKS = "Weeks"
    MONTHS = "Months"


# A hundred years of each.
MOST = {
    IntervalType.MINUTES: 52_560_000,
    IntervalType.HOURS: 876_000,
    IntervalType.DAYS: 36_500,
    IntervalType.WEEKS: 5_200,
    IntervalType.MONTHS: 1_200,
}
LENGTH = {
    IntervalType.MINUTES: timedelta(minutes=1),
    IntervalType.HOURS: timedelta(hours=1),
    IntervalType.DAYS: timedelta(days=1),
    IntervalType.WEEKS: timedelta(weeks=1),
}
ISO = re.compile(
    r"P(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)S)?)?"
)


def parse(text: str) -> tuple[IntervalType, int]:
    """The largest type that holds the duration without a rest: P1Y is 12 Months, PT60S 1 Minutes."""
    match = ISO.fullmatch(text) if len(text) <= 50 else None
    if match is None or not any(match.groups()):
        raise _refuse(text, _why(text))
    years, months, weeks, days, hours, minutes, seconds = (
        int(part or 0) for part in match.groups()
    )
    if seconds % 60:
        raise _refuse(text, "has seconds; whole minutes are the smallest step")
    minutes += seconds // 60
    months += 12 * years
    if sum(1 for part in (months, weeks, days or hours or minutes) if part) > 1:
        raise _refuse(text, "mixes months, weeks and days; use one of them")
    if months:
        type, count = IntervalType.MONTHS, months
    elif weeks:
        type, count = IntervalType.WEEKS, weeks
    elif minutes:
        type, count = IntervalType.MINUTES, (days * 24 + hours) * 60 + minutes
    elif hours:
        type, count = IntervalType.HOURS, days * 24 + hours
    else:
        type, count = IntervalType.DAYS, days
    if why := check(type, count):
        raise _refuse(text, why)
    return type, count


def text(type: IntervalType, count: int) -> str:
    """Canonical: what `parse` reads back as the same pair."""
    match type:
        case IntervalType.MINUTES if count > 60 and count % 60:
            return f"PT{count // 60}H{count % 60}M"
        case IntervalType.MINUTES:
            return f"PT{count}M"
        case IntervalType.HOURS:
            return f"PT{count}H"
        case IntervalType.DAYS:
            return f"P{count}D"
        case IntervalType.WEEKS:
            return f"P{count}W"
        case IntervalType.MONTHS:
            years, months = divmod(count, 12)
            return "P" + (f"{years}Y" if years else "") + (f"{months}M" if months else "")


def check(type: IntervalType, count: int) -> str:
    """Why this count can't be; empty when it can."""
    if count < 1:
        return "is shorter than one minute, the smallest interval"
    if count > MOST[type]:
        return "is longer than a hundred years"
    return ""


def _why(text: str) -> str:
    if "-" in text:
        return "is negative"
    if "." in text or "," in text:
        return "has a fraction; use a smaller unit"
    return "is no ISO 8601 duration like PT5M, PT1H30M, P1D, P1W, P1M or P1Y"


def _refuse(text: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"The interval '{text[:50]}' {why}.", code=CODE, target="interval")
