"""When a job runs, as options say it and as people read it."""

import argparse
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.cli.arguments import add_choice
from muster.cli.client import Refused
from muster.cli.typed import interval

OVERLAPS = ("skipTarget", "skipExecution", "queueOne", "allow", "cancelPrevious")
NEVER = "0001-01-01T00:00:00Z"  # the start of a job without a schedule


def add(made: argparse.ArgumentParser) -> None:
    when = made.add_mutually_exclusive_group()
    when.add_argument("--cron", metavar="EXPR", help='such as "30 3 * * *"')
    when.add_argument(
        "--every", type=interval, metavar="INTERVAL", help="such as 15m, 1h, 1d or PT1H30M"
    )
    when.add_argument("--at", metavar="TIME", help="once, such as 2031-01-01T02:00:00Z")
    first = made.add_mutually_exclusive_group()
    first.add_argument("--start", metavar="TIME", help="of --every and --cron: not before")
    first.add_argument(
        "--now", action="store_true", help="of --every: the first run starts at once"
    )
    made.add_argument("--time-zone", metavar="ZONE", help="such as Europe/Berlin; default: UTC")
    add_choice(made, "--overlap", choices=OVERLAPS, help="default: skipTarget")
    made.add_argument("--disabled", action="store_true", help="the schedule is disabled")


def read(options: argparse.Namespace) -> dict[str, Any]:
    scheduled = options.cron or options.every or options.at
    schedule: dict[str, Any] = {}
    if options.overlap:
        schedule["overlap"] = options.overlap
    if not scheduled:
        if options.start or options.now or options.time_zone or options.disabled:
            raise Refused("use --cron, --every or --at: the other options only refine it")
        return schedule
    schedule |= {"enabled": not options.disabled, "type": "Once" if options.at else "Recurring"}
    if options.cron:
        schedule |= {"cron": options.cron, "timeZone": options.time_zone or "UTC"}
    if options.now and not options.every:
        raise Refused("--now is for --every: --cron and --at themselves say when the first run is")
    if options.every:
        if not (options.start or options.now or options.disabled):
            raise Refused(
                f"--every {options.every} without a start runs at once on all targets of the group: "
                "use --now if you want that, or --start TIME for the first run"
            )
        if options.time_zone and not options.start:
            raise Refused("--every counts hours and days from its --start: --time-zone is of that")
        schedule["interval"] = options.every
    if begin := options.at or options.start:
        schedule["startTime"] = _time(begin, options.time_zone)
    return schedule


def starts_at_once(options: argparse.Namespace) -> bool:
    return bool(options.now and not options.disabled)


def resting(schedule: dict[str, Any]) -> dict[str, Any]:
    """The same, and nothing comes of it yet."""
    return {**schedule, "enabled": False} if schedule.get("enabled") else schedule


def describe(schedule: dict[str, Any]) -> str | None:
    if cron := schedule.get("cron"):
        return f"{cron} {schedule.get('timeZone') or 'UTC'}"
    if schedule.get("type") == "Recurring":
        return f"every {schedule.get('interval')}"
    begin = schedule.get("startTime")
    return f"once at {begin}" if begin and begin != NEVER else None


def _time(text: str, zone: str | None) -> str:
    """An instant: a time without a zone is meant in --time-zone, and refused without one."""
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            if zone is None:
                raise Refused(f"'{text}' has no time zone: append Z, or use --time-zone")
            at = at.replace(tzinfo=ZoneInfo(zone))
    except (ValueError, ZoneInfoNotFoundError) as error:
        raise Refused(f"'{text}' is no time such as 2031-01-01T02:00:00Z: {error}") from error
    return at.isoformat()
