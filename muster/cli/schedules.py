"""When a job runs, as options say it and as people read it."""

import argparse
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.cli import updates
from muster.cli.arguments import Parser, duration
from muster.cli.client import Refused
from muster.cli.typed import interval
from muster.cli.updates import setting

OVERLAPS = ("skipTarget", "skipExecution", "queueOne", "allow", "cancelPrevious")
SETTINGS = (
    setting(
        "--start",
        "properties.schedule.startTime",
        read=lambda _: None,  # with a time zone; see _when
        metavar="TIME",
        help="of --every and --cron: not before",
    ),
    setting(
        "--end",
        "properties.schedule.endTime",
        read=lambda _: None,
        metavar="TIME",
        help="no run from then on",
    ),
    setting(
        "--overlap",
        "properties.schedule.overlap",
        choices=OVERLAPS,
        help="what happens while an earlier run goes on; default: skipTarget",
    ),
    setting(
        "--misfire",
        "properties.schedule.misfire.policy",
        choices=("runOnce", "skip"),
        help="what becomes of a slot that was missed; default: runOnce",
    ),
    setting(
        "--misfire-within",
        "properties.schedule.misfire.withinSeconds",
        type=duration,
        help="how late a slot may still run: 90, 15m, 2h",
    ),
)
NEVER = "0001-01-01T00:00:00Z"  # the start of a job without a schedule


def add(made: Parser) -> None:
    add_when(made)
    updates.add_settings(made, SETTINGS)


def add_when(made: Parser) -> None:
    when = made.add_mutually_exclusive_group()
    when.add_argument("--cron", metavar="EXPR", help='such as "30 3 * * *"')
    when.add_argument(
        "--every", type=interval, metavar="INTERVAL", help="such as 15m, 1h, 1d or PT1H30M"
    )
    when.add_argument("--at", metavar="TIME", help="once, such as 2031-01-01T02:00:00Z")
    made.add_argument("--now", action="store_true", help="of --every: the first run starts at once")
    made.add_argument("--time-zone", metavar="ZONE", help="such as Europe/Berlin; default: UTC")
    made.add_argument("--disabled", action="store_true", help="the schedule is disabled")


def read(options: argparse.Namespace) -> dict[str, Any]:
    """A schedule in the place of any other."""
    if not _says_when(options):
        if _refines(options):
            raise Refused("use --cron, --every or --at: the other options only refine it")
        return _more(options)
    if options.every and not (options.start or options.now or options.disabled):
        raise _at_once(options.every)
    schedule = {**_more(options), "enabled": not options.disabled, **_when(options)}
    if options.cron:
        schedule["timeZone"] = options.time_zone or "UTC"
    return schedule


def changes(options: argparse.Namespace, current: dict[str, Any]) -> dict[str, Any]:
    """A merge patch; a schedule counts at once where the job had none, unless --disabled."""
    is_new = describe(current) is None
    if is_new:
        return read(options) if _says_when(options) or _refines(options) else _more(options)
    has_start = current.get("startTime", NEVER) != NEVER
    if options.every and not (options.start or options.now or options.disabled or has_start):
        raise _at_once(options.every)
    has_cron = options.cron or (current.get("cron") and not (options.every or options.at))
    if options.time_zone and not (has_cron or options.start or options.end or options.at):
        raise Refused("--time-zone is of --cron, --start, --end and --at")
    patch = {**_more(options), **_when(options, current.get("timeZone"))}
    if options.disabled:
        patch["enabled"] = False
    if options.now:
        patch["startTime"] = None
    if has_cron and (options.time_zone or not current.get("cron")):
        patch["timeZone"] = options.time_zone or "UTC"
    return patch


def _says_when(options: argparse.Namespace) -> bool:
    return bool(options.cron or options.every or options.at)


def _refines(options: argparse.Namespace) -> bool:
    return bool(
        options.start
        or options.now
        or options.end
        or options.time_zone
        or options.disabled
        or options.misfire
        or options.misfire_within is not None
    )


def _more(options: argparse.Namespace) -> dict[str, Any]:
    """What a job may have without a schedule, and what is done about missed slots."""
    misfire = {"policy": options.misfire, "withinSeconds": options.misfire_within}
    misfire = {name: value for name, value in misfire.items() if value is not None}
    return {
        **({"overlap": options.overlap} if options.overlap else {}),
        **({"misfire": misfire} if misfire else {}),
    }


def _when(options: argparse.Namespace, zone: str | None = None) -> dict[str, Any]:
    zone = options.time_zone or zone
    if options.now and options.start:
        raise Refused("either --now or --start")
    if options.now and not options.every:
        raise Refused("--now is for --every: --cron and --at themselves say when the first run is")
    if options.every and options.time_zone and not (options.start or options.end):
        raise Refused("--every counts hours and days from its --start: --time-zone is of that")
    when: dict[str, Any] = {}
    if _says_when(options):
        when["type"] = "Once" if options.at else "Recurring"
    if options.cron:
        when["cron"] = options.cron
    if options.every:
        when["interval"] = options.every
    if begin := options.at or options.start:
        when["startTime"] = _time(begin, zone)
    if options.end:
        when["endTime"] = _time(options.end, zone)
    return when


def _at_once(interval: str) -> Refused:
    return Refused(
        f"--every {interval} without a start runs at once on all targets of the group: "
        "use --now if you want that, or --start TIME for the first run"
    )


def starts_at_once(options: argparse.Namespace) -> bool:
    return bool(options.now and not options.disabled)


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
