"""How jobs are shown: a row each, or one with its steps and its next run."""

import argparse
from shlex import quote
from typing import Any

from muster.cli import auto_disable, output, run_attempts, schedules
from muster.cli.client import Api
from muster.cli.output import Table, moment, when

COLUMNS = (
    "name",
    "version",
    "schedule",
    "enabled",
    "paused",
    "last_run",
    "last_created",
    "next_run",
    "description",
)
OPTIONAL = ("last_run", "last_created", "next_run", "description")
STEP = ("step", "name", "group", "credential", "script")


def show(api: Api, options: argparse.Namespace, path: str, *, first: bool = False) -> None:
    """The job as the API shows it, with its steps beside; for people first the one, then the others.

    `first`: the job was just written, so its next run is its first one.
    """
    job, steps = api.get(path), api.all(f"{path}/steps")
    upcoming = api.get(f"{path}/nextRuns", {"$top": 1})["value"]
    rows = [step_row(each) for each in steps]
    if output.is_for_people(options):
        attempts = run_attempts.describe(job["properties"].get("runAttempts"))
        health = auto_disable.describe(job["properties"])
        notes = [*_when(job["name"], job["properties"], upcoming), *attempts, *health]
        if first and schedules.starts_at_once(options):
            notes = ["first run: now", *notes]
        elif first:
            notes = [each.replace("next run:", "first run:") for each in notes]
        output.show(options, job, Table(COLUMNS, [row(job)], optional=OPTIONAL), notes=notes)
        print()
    document = {**job, "steps": steps, "nextRuns": upcoming}
    output.show(options, document, Table(STEP, rows, optional=("credential",)))


def _when(name: str, properties: dict[str, Any], upcoming: list[dict[str, Any]]) -> list[str]:
    """When it runs next, and what happens if it still runs then."""
    schedule = properties.get("schedule") or {}
    if schedules.describe(schedule) is None:
        return [f"no schedule: muster job start {quote(name)} runs it"]
    if upcoming:
        next_run = when(upcoming[0]["time"])
    elif not schedule.get("enabled"):
        next_run = "none, the schedule is disabled"
    elif properties.get("paused"):
        next_run = "none while the job is paused"
    else:  # a Once disables itself as soon as it has run, and waits for steps or the end of a pause
        next_run = "as soon as it can begin" if schedule.get("type") == "Once" else "none"
    overlap = schedule.get("overlap")
    return [f"next run: {next_run}", *([f"overlap: {overlap}"] if overlap else [])]


def row(job: dict[str, Any]) -> list[Any]:
    properties = job.get("properties") or {}  # nothing of one that only lies above
    schedule, last = properties.get("schedule") or {}, properties.get("lastRun") or {}
    return [
        job["name"],
        properties.get("version"),
        schedules.describe(schedule),
        schedule.get("enabled", False),
        properties.get("paused", False),
        last.get("lifecycle"),
        moment(last.get("createTime")),
        moment(properties.get("nextRunTime")),
        properties.get("description") or None,
    ]


def step_row(step: dict[str, Any]) -> list[Any]:
    properties = step["properties"]
    return [
        properties["stepId"],
        step["name"],
        _last(properties["targetGroup"]),
        _last(properties.get("credential")),
        properties["action"]["value"],
    ]


def _last(id: str | None) -> str | None:
    return id.rsplit("/", 1)[-1] if id else None
