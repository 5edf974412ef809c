"""When a job runs: Azure's Once and Recurring, and cron in a time zone.

    nightly = Schedule(type=ScheduleType.CRON, cron="30 2 * * *", time_zone="Europe/Berlin")
    due = slots(nightly, anchor=enabled_at, after=last_slot, until=now)

A slot is an instant in UTC at which the job is to start. The anchor is the instant at which the
schedule was enabled or last changed: nothing ever fires for the time before it.
"""

import calendar
import difflib
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import count, islice, takewhile
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from muster.core import cron, interval
from muster.core.errors import FieldError, InvalidRequest
from muster.core.interval import IntervalType

DEFAULT_START = datetime(1, 1, 1, tzinfo=UTC)
DEFAULT_END = datetime(9999, 12, 31, 11, 59, 59, tzinfo=UTC)  # Azure's, eleven o'clock and all
GRACE = timedelta(hours=1)
GRACE_ONCE = timedelta(days=1)
GRACE_SKIP = timedelta(minutes=1)  # no scheduler is exact: as punctual as a schedule can ask for


class ScheduleType(StrEnum):
    ONCE = "Once"
    RECURRING = "Recurring"
    CRON = "Cron"


class Misfire(StrEnum):
    RUN_ONCE = "runOnce"
    SKIP = "skip"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    type: ScheduleType = ScheduleType.ONCE
    enabled: bool = False
    start: datetime = DEFAULT_START  # the first instant that can be a slot
    end: datetime = DEFAULT_END  # the first that can't
    interval_type: IntervalType | None = None
    interval_count: int | None = None
    cron: str | None = None
    time_zone: str | None = None  # of the cron line; unset = UTC
    misfire: Misfire = Misfire.RUN_ONCE
    within: timedelta | None = None  # how late a slot may still fire; unset = see `grace`


def slots(
    schedule: Schedule,
    *,
    anchor: datetime,
    after: datetime | None = None,
    until: datetime | None = None,
    limit: int | None = None,
) -> Iterator[datetime]:
    """The slots after `after`, up to `until` inclusive, at most `limit`, strictly rising.

    None lies before the anchor, before `start` or at or after `end`. Once: its start, or the anchor
    when that is later. Recurring: start + n × interval, counted from the start in UTC; months keep
    the start's day as far as the month has it. With Azure's default start the anchor is the start.
    Cron: a slot in a gap of the clock comes at the first instant after it, a doubled one once, the
    first time. A disabled schedule has none.
    """
    if not schedule.enabled:
        return iter(())
    anchor = anchor.astimezone(UTC)
    lower = anchor if after is None else max(anchor, after.astimezone(UTC) + timedelta.resolution)
    match schedule.type:
        case ScheduleType.ONCE:
            slot = max(schedule.start.astimezone(UTC), anchor)
            times = iter([slot] if slot >= lower else [])
        case ScheduleType.RECURRING:
            times = _recurring(schedule, anchor, lower)
        case ScheduleType.CRON:
            times = _cron(schedule, lower)
    within = takewhile(lambda s: s < schedule.end and (until is None or s <= until), times)
    return islice(within, limit)


def grace(schedule: Schedule, slot: datetime) -> timedelta:
    """How long after its slot a run may still start; later the slot is missed.

    Unless `within` says so: half the way to the next slot, at most an hour; a day for Once. A
    schedule that skips makes up for nothing, so there it is a minute at most.
    """
    if schedule.within is not None:
        return schedule.within
    once = schedule.type is ScheduleType.ONCE
    most = GRACE_ONCE if once else GRACE
    if schedule.misfire is Misfire.SKIP:
        most = GRACE_SKIP
    if once:
        return most
    endless = msgspec.structs.replace(schedule, enabled=True, end=DEFAULT_END)
    follower = next(slots(endless, anchor=slot, after=slot), None)
    return most if follower is None else min(most, (follower - slot) / 2)


def check(schedule: Schedule, *, target: str = "properties.schedule") -> list[FieldError]:
    """All that is wrong with it. Once ignores an interval, as Azure does."""
    errors = _check_times(schedule, target)
    if schedule.type is ScheduleType.RECURRING:
        errors += _check_interval(schedule, target)
    if schedule.type is ScheduleType.CRON:
        errors += _check_cron(schedule, target)
    else:
        errors += [
            FieldError(f"{target}.{field}", f"{field} goes with type Cron only.")
            for field, value in (("cron", schedule.cron), ("timeZone", schedule.time_zone))
            if value is not None
        ]
    if schedule.within is not None and schedule.misfire is Misfire.SKIP:
        message = "within goes with policy runOnce only: skip makes up for nothing."
        errors.append(FieldError(f"{target}.misfire.within", message))
    elif schedule.within is not None and schedule.within <= timedelta(0):
        errors.append(FieldError(f"{target}.misfire.within", "within must be longer than zero."))
    return errors


def _recurring(schedule: Schedule, anchor: datetime, lower: datetime) -> Iterator[datetime]:
    """Jumps to the last slot at or before `lower` and goes on from there."""
    assert schedule.interval_type is not None
    assert schedule.interval_count is not None
    start = anchor if schedule.start == DEFAULT_START else schedule.start.astimezone(UTC)
    lower = max(lower, start)
    length = interval.LENGTH.get(schedule.interval_type)
    if length is None:
        months = (lower.year - start.year) * 12 + lower.month - start.month
        first = months // schedule.interval_count
    else:
        first = (lower - start) // (length * schedule.interval_count)
    for number in count(first):
        steps = number * schedule.interval_count
        try:
            slot = _months_later(start, steps) if length is None else start + steps * length
        except (OverflowError, ValueError):
            return  # the calendar ends
        if slot >= lower:
            yield slot


def _months_later(start: datetime, months: int) -> datetime:
    years, month = divmod(start.month - 1 + months, 12)
    year = start.year + years
    last = calendar.monthrange(year, month + 1)[1]
    return start.replace(year=year, month=month + 1, day=min(start.day, last))


def _cron(schedule: Schedule, lower: datetime) -> Iterator[datetime]:
    assert schedule.cron is not None
    zone = ZoneInfo(schedule.time_zone or "UTC")
    lower = max(lower, schedule.start.astimezone(UTC))
    # The wall time just before: what a gap swallowed comes at the gap's end, which may be `lower`.
    before = (lower - timedelta.resolution).astimezone(zone)
    since = before.replace(tzinfo=None, second=0, microsecond=0)
    latest = lower - timedelta.resolution
    for wall in cron.parse(schedule.cron).walls(since):
        slot = _instant(wall, zone)
        if slot > latest:
            latest = slot
            yield slot


def _instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks in the zone show `wall`, or have jumped over it."""
    late = wall.replace(tzinfo=zone).astimezone(UTC)
    if late.astimezone(zone).replace(tzinfo=None) == wall:
        return late
    early = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    old = early.astimezone(zone).utcoffset()
    jump = bisect_left(
        range(int((late - early).total_seconds())),
        x=True,
        key=lambda second: (early + timedelta(seconds=second)).astimezone(zone).utcoffset() != old,
    )
    return early + timedelta(seconds=jump)


def _check_times(schedule: Schedule, target: str) -> list[FieldError]:
    errors = [
        FieldError(f"{target}.{field}", f"{field} must be a time with its zone, within 9999 years.")
        for field, value in (("startTime", schedule.start), ("endTime", schedule.end))
        if value.tzinfo is None or not _in_calendar(value)
    ]
    if not errors and schedule.end <= schedule.start:
        errors.append(FieldError(f"{target}.endTime", "endTime must be later than startTime."))
    return errors


def _in_calendar(instant: datetime) -> bool:
    try:
        instant.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _check_interval(schedule: Schedule, target: str) -> list[FieldError]:
    field = f"{target}.interval"
    if schedule.interval_type is None or schedule.interval_count is None:
        return [FieldError(field, "A Recurring schedule needs an interval.", interval.CODE)]
    why = interval.check(schedule.interval_type, schedule.interval_count)
    return [FieldError(field, f"The interval {why}.", interval.CODE)] if why else []


def _check_cron(schedule: Schedule, target: str) -> list[FieldError]:
    errors = []
    if schedule.interval_type is not None or schedule.interval_count is not None:
        message = "Give either a cron line or an interval."
        errors.append(FieldError(f"{target}.interval", message))
    try:
        cron.parse(schedule.cron or "")
    except InvalidRequest as fault:
        errors.append(FieldError(f"{target}.cron", fault.message))
    zone = schedule.time_zone
    # Only listed names: ZoneInfo itself opens any path.
    if zone is not None and zone not in _zones().values():
        near = difflib.get_close_matches(zone[:50].lower(), _zones(), cutoff=0.55)
        hint = f"; near it: {', '.join(_zones()[name] for name in near)}" if near else ""
        message = f"'{zone[:50]}' is no IANA time zone{hint}."
        errors.append(FieldError(f"{target}.timeZone", message))
    return errors


@lru_cache(maxsize=1)
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in sorted(available_timezones())}
