"""What a job and its schedule may be."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from muster.core import interval, schedule
from muster.core.errors import FieldError, InvalidRequest
from muster.core.schedule import Misfire, Schedule, ScheduleType
from workflows.validation import common

SCHEDULE = "properties.schedule"
LONGEST_DESCRIPTION = 512
LONGEST_OWNER = 256


def job(name: str, given: dict[str, Any]) -> list[FieldError]:
    where = "properties"
    return [
        *common.item_name(name),
        *common.no_longer(f"{where}.description", given.get("description"), LONGEST_DESCRIPTION),
        *common.no_longer(f"{where}.owner", given.get("owner"), LONGEST_OWNER),
        *_priority(f"{where}.priority", given.get("priority")),
        *common.within(f"{where}.retentionDays", given.get("retentionDays"), 1, 36_500),
        *common.labels(f"{where}.labels", given.get("labels")),
        *_schedule(given.get("schedule") or {}),
    ]


def _priority(where: str, given: int | None) -> list[FieldError]:
    """Runs are not ordered by it: another value than the default would have no effect."""
    if not given:
        return []
    message = "A priority other than 0 is not supported by this version: leave it out."
    return [FieldError(where, message, "OptionNotSupported")]


def schedule_of(given: dict[str, Any], on_error: Callable[[FieldError], None]) -> Schedule:
    """The schedule that a job's properties describe; what can't be read is told and left out."""
    read: dict[str, Any] = {}
    for name, field in (("startTime", "start"), ("endTime", "end")):
        if given.get(name):
            try:
                read[field] = datetime.fromisoformat(given[name])
            except ValueError:
                message = f"'{given[name][:50]}' is no time such as 2031-01-01T00:00:00Z."
                on_error(FieldError(f"{SCHEDULE}.{name}", message))
    recurring = given.get("type") == "Recurring"
    if recurring and given.get("interval") is not None:
        try:
            read["interval_type"], read["interval_count"] = interval.parse(given["interval"])
        except InvalidRequest as wrong:
            on_error(FieldError(f"{SCHEDULE}.interval", wrong.message, wrong.code))
    misfire = given.get("misfire") or {}
    within = misfire.get("withinSeconds")
    type = ScheduleType.RECURRING if recurring else ScheduleType.ONCE
    return Schedule(
        type=ScheduleType.CRON if given.get("cron") is not None else type,
        enabled=bool(given.get("enabled")),
        cron=given.get("cron"),
        time_zone=given.get("timeZone"),
        misfire=Misfire(misfire.get("policy", Misfire.RUN_ONCE)),
        within=None if within is None else timedelta(seconds=within),
        **read,
    )


def _schedule(given: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    wanted = schedule_of(given, errors.append)
    unread = {error.target for error in errors}
    if given.get("cron") is not None and given.get("type") == "Once":
        message = "A schedule with cron is Recurring."
        errors.append(FieldError(f"{SCHEDULE}.type", message))
    for error in schedule.check(wanted, target=SCHEDULE):
        if error.target not in unread:
            target = error.target.replace("misfire.within", "misfire.withinSeconds")
            errors.append(FieldError(target, error.message, error.code))
    return errors
