"""Cron lines in wall time: five fields, read strictly, searched without ever running on.

By hand and not by a library: the ones at hand read more than is promised here (seconds, L, W, #)
and find out that a date never comes by searching for it.

`parse("*/15 8-17 * * MON-FRI").walls(datetime(2026, 1, 2, 17, 50))` starts with 2026-01-05 08:00.
"""

import calendar
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from muster.core.errors import InvalidRequest

MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, least, most, names and the value of the first name.
FIELDS: tuple[tuple[str, int, int, tuple[str, ...], int], ...] = (
    ("minute", 0, 59, (), 0),
    ("hour", 0, 23, (), 0),
    ("day of month", 1, 31, (), 0),
    ("month", 1, 12, MONTHS, 1),
    ("day of week", 0, 7, DAYS, 0),
)
TERM = re.compile(
    r"(?:\*|(?P<low>[0-9]{1,2}|[a-z]{3})(?:-(?P<high>[0-9]{1,2}|[a-z]{3}))?)(?:/(?P<step>[0-9]{1,2}))?"
)
LAST_YEAR = 9998  # one before the end of the calendar, so that no zone falls over its edge
LONGEST = 250


@dataclass(frozen=True, slots=True)
class Cron:
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # Sunday is 0
    either: bool  # both kinds of day are restricted: one of them suffices, as in every cron

    def walls(self, since: datetime) -> Iterator[datetime]:
        """Every matching minute from `since` on (itself too, if it matches), naive and rising."""
        day = since.date()
        while day.year <= LAST_YEAR:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
                continue
            if self._on(day):
                first = since.hour if day == since.date() else 0
                for hour in self.hours[bisect_left(self.hours, first) :]:
                    for minute in self.minutes:
                        wall = datetime.combine(day, time(hour, minute))
                        if wall >= since:
                            yield wall
            day += timedelta(days=1)

    def _on(self, day: date) -> bool:
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either else by_date and by_weekday


@lru_cache(maxsize=4096)
def parse(text: str) -> Cron:
    """Refuses what is not five fields or one of the five macros, and dates that never come."""
    line = MACROS.get(text.strip().lower(), text)
    if line.startswith("@"):
        raise _refuse(text, f"is none of {', '.join(MACROS)}")
    fields = line.lower().split()
    if len(fields) != 5 or len(line) > LONGEST:
        raise _refuse(text, "must have five fields: minute, hour, day of month, month, day of week")
    minutes, hours, days, months, weekdays = (
        frozenset().union(*(_term(text, term, *rule) for term in field.split(",")))
        for field, rule in zip(fields, FIELDS, strict=True)
    )
    either = not (fields[2].startswith("*") or fields[4].startswith("*"))
    # 2024 is a leap year: its months are as long as months get.
    if not either and min(days) > max(calendar.monthrange(2024, month)[1] for month in months):
        raise _refuse(text, "names a day that its months never have")
    return Cron(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        days,
        months,
        frozenset(day % 7 for day in weekdays),
        either,
    )


def _term(
    text: str, term: str, field: str, least: int, most: int, names: tuple[str, ...], first: int
) -> frozenset[int]:
    """`*`, `5`, `1-5`, `MON-FRI`, and a step after a star or a range."""

    def number(word: str) -> int:
        value = names.index(word) + first if word in names else int(word) if word.isdigit() else -1
        if not least <= value <= most:
            raise _refuse(text, f"has '{word}' as {field}; {least} to {most} can be")
        return value

    match = TERM.fullmatch(term)
    if match is None:
        raise _refuse(text, f"has '{term[:30]}' as {field}")
    low, high, step = match["low"], match["high"], match["step"]
    if low and step and not high:
        raise _refuse(text, f"has a step without a range as {field}: '{term}'")
    start = number(low) if low else least
    end = number(high) if high else start if low else most
    if end < start:
        raise _refuse(text, f"has a range that runs backwards as {field}: '{term}'")
    if step and not 1 <= int(step) <= most - least:
        raise _refuse(text, f"has a step that is too long or zero as {field}: '{term}'")
    return frozenset(range(start, end + 1, int(step or 1)))


def _refuse(text: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"The cron line '{text[:LONGEST]}' {why}.", code="InvalidParameterValue", target="cron"
    )
