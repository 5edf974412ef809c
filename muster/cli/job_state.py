"""`muster job pause|resume|enable|disable|schedule`: whether and when a job starts; the rest of it stays."""

import argparse
from shlex import quote
from typing import Any

from muster.cli import lookup, output, schedules
from muster.cli.arguments import Commands, of_account, verb
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("name", "schedule", "enabled", "paused", "next_run")


def add(verbs: Commands) -> None:
    for name, run, about in (
        ("pause", pause, "start nothing of a job until it is resumed; its schedule stays"),
        ("resume", resume, "let a paused job start again"),
        ("enable", enable, "let the schedule of a job start it"),
        ("disable", disable, "stop the schedule of a job from starting it; job start still works"),
    ):
        made = verb(verbs, name, run, about, example=f"muster job {name} nightly")
        of_account(made).add_argument("name", metavar="JOB")
    about = "replace the schedule of a job; everything else of it stays"
    example = 'muster job schedule nightly --cron "30 3 * * *" --time-zone Europe/Berlin'
    one = of_account(verb(verbs, "schedule", schedule, about, example=example))
    one.add_argument("name", metavar="JOB")
    schedules.add(one)
    one.add_argument("--none", action="store_true", help="the job has no schedule any more")


def pause(options: argparse.Namespace) -> int:
    return _change(options, {"paused": True})


def resume(options: argparse.Namespace) -> int:
    return _change(options, {"paused": False})


def enable(options: argparse.Namespace) -> int:
    return _change(options, {"schedule": {"enabled": True}})


def disable(options: argparse.Namespace) -> int:
    return _change(options, {"schedule": {"enabled": False}})


def schedule(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name)
        body = schedules.read(options)
        if ("type" in body) == options.none:
            raise Refused("use one of --cron, --every, --at and --none")
        api.put(f"{path}/schedule", body)
        return _show(api, options, path, api.get(path))

    return calling(options, put)


def _change(options: argparse.Namespace, properties: dict[str, Any]) -> int:
    def patch(api: Api) -> int:
        path = under(lookup.account(api, options), "jobs", options.name)
        if properties.get("schedule") == {"enabled": True}:
            _scheduled(api.get(path), options.name)
        return _show(api, options, path, api.patch(path, {"properties": properties}))

    return calling(options, patch)


def _show(api: Api, options: argparse.Namespace, path: str, job: dict[str, Any]) -> int:
    upcoming = api.get(f"{path}/nextRuns", {"$top": 1})["value"]
    current = job["properties"]
    schedule = current.get("schedule") or {}
    row = [
        job["name"],
        schedules.describe(schedule),
        schedule.get("enabled", False),
        current.get("paused", False),
        moment(upcoming[0]["time"]) if upcoming else None,
    ]
    output.show(options, job, Table(COLUMNS, [row]))
    return Exit.SUCCEEDED


def _scheduled(job: dict[str, Any], name: str) -> None:
    """Enabling a job without a schedule would start it at once."""
    if schedules.describe(job["properties"].get("schedule") or {}) is None:
        raise Refused(
            f"the job '{name}' has no schedule: muster job start {quote(name)} runs it now, and "
            "muster job schedule with --cron, --every or --at gives it one"
        )
