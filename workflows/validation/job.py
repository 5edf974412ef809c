"""What a job and its schedule may be."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from muster.core import interval, schedule
from muster.core.errors import FieldError, InvalidRequest
from muster.core.schedule import Misfire, Schedule, ScheduleType
from workflows.validation import common
from workflows.validation.run_attempts import run_attempts

SCHEDULE = "properties.schedule"
LONGEST_DESCRIPTION = 512
LONGEST_OWNER = 256


def job(name: str, properties: dict[str, Any]) -> list[FieldError]:
    where = "properties"
    return [
        *common.item_name(name),
        *common.no_longer(
            f"{where}.description", properties.get("description"), LONGEST_DESCRIPTION
        ),
        *common.no_longer(f"{where}.owner", properties.get("owner"), LONGEST_OWNER),
        *_priority(f"{where}.priority", properties.get("priority")),
        *common.within(f"{where}.retentionDays", properties.get("retentionDays"), 1, 36_500),
        *common.labels(f"{where}.labels", properties.get("labels")),
        *run_attempts(properties.get("runAttempts")),
        *_schedule(properties.get("schedule") or {}),
    ]


def _priority(where: str, value: int | None) -> list[FieldError]:
    """Runs are not ordered by it: another value than the default would have no effect."""
    if not value:
        return []
    message = "A priority other than 0 is not supported by this version: leave it out."
    return [FieldError(where, message, "OptionNotSupported")]


def schedule_of(document: dict[str, Any], on_error: Callable[[FieldError], None]) -> Schedule:
    """The schedule that a job's properties describe; what can't be read is an error and left out."""
    read: dict[str, Any] = {}
    for name, field in (("startTime", "start"), ("endTime", "end")):
        if document.get(name):
            try:
                read[field] = datetime.fromisoformat(document[name])
            except ValueError:
                message = f"'{document[name][:50]}' is no time such as 2031-01-01T00:00:00Z."
                on_error(FieldError(f"{SCHEDULE}.{name}", message))
    recurring = document.get("type") == "Recurring"
    if recurring and document.get("interval") is not None:
        try:
            read["interval_type"], read["interval_count"] = interval.parse(document["interval"])
        except InvalidRequest as wrong:
            on_error(FieldError(f"{SCHEDULE}.interval", wrong.message, wrong.code))
    misfire = document.get("misfire") or {}
    within = misfire.get("withinSeconds")
    type = ScheduleType.RECURRING if recurring else ScheduleType.ONCE
    return Schedule(
        type=ScheduleType.CRON if document.get("cron") is not None else type,
        enabled=bool(document.get("enabled")),
        cron=document.get("cron"),
        time_zone=document.get("timeZone"),
        misfire=Misfire(misfire.get("policy", Misfire.RUN_ONCE)),
        within=None if within is None else timedelta(seconds=within),
        **read,
    )


def _schedule(document: dict[str, Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    wanted = schedule_of(document, errors.append)
    unread = {error.target for error in errors}
    if document.get("cron") is not None and document.get("type") == "Once":
        message = "A schedule with cron is Recurring."
        errors.append(FieldError(f"{SCHEDULE}.type", message))
    for error in schedule.check(wanted, target=SCHEDULE):
        if error.target not in unread:
            target = error.target.replace("misfire.within", "misfire.withinSeconds")
            errors.append(FieldError(target, error.message, error.code))
    return errors
