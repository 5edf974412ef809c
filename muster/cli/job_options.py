"""Options of a job besides its steps, for `job create` and `job update`."""

import argparse

from muster.cli import auto_disable, run_attempts, schedules, updates
from muster.cli.arguments import Parser, count
from muster.cli.updates import LABELS, Document, setting

SETTINGS = (
    setting("--description", "properties.description", metavar="TEXT"),
    setting("--owner", "properties.owner", metavar="TEXT", help="whom to ask about the job"),
    LABELS,
    setting(
        "--retention-days",
        "properties.retentionDays",
        type=count,
        metavar="N",
        help="how long its history is kept; default: as the account says",
    ),
)
OF_AN_UPDATE = (  # create declares them as the account does
    setting(
        "--auto-disable",
        "properties.autoDisable",
        type=auto_disable.policy,
        metavar="N/DAYS",
        help="disable the schedule after N failures in a row and no success for DAYS; off: never",
    ),
    setting(
        "--run-attempts",
        "properties.runAttempts",
        read=lambda _: None,
        choices=("on", "off"),
        help="on: a run repeats its targets that have not succeeded, in further attempts",
    ),
    *(
        setting(
            f"--{name}",
            f"properties.runAttempts.{path}",
            type=count,
            metavar="N",
            help="of --run-attempts",
        )
        for path, name in run_attempts.LIMITS.items()
    ),
    setting(
        "--attempt-backoff",
        "properties.runAttempts.backoffSeconds",
        type=run_attempts.durations,
        metavar="DURATION,…",
        help="pauses after successive attempts in which none newly succeeded",
    ),
)
CHANGEABLE = (*SETTINGS, *schedules.SETTINGS, *OF_AN_UPDATE)


def add(made: Parser) -> None:
    updates.add_settings(made, SETTINGS)
    schedules.add(made)
    auto_disable.add(made, "as the account says")
    run_attempts.add(made)


def add_update(made: Parser) -> None:
    schedules.add_when(made)
    updates.add(made, CHANGEABLE)


def read(options: argparse.Namespace) -> Document:
    """The properties of a new job."""
    made: Document = updates.given(options, SETTINGS).get("properties", {})
    others = {
        "runAttempts": run_attempts.read(options),
        "autoDisable": options.auto_disable,
        "schedule": schedules.read(options),
    }
    return made | {name: value for name, value in others.items() if value is not None}


def changes(options: argparse.Namespace, current: Document) -> Document:
    """A merge patch of a job whose properties are `current`."""
    also: Document = {}
    if schedule := schedules.changes(options, current.get("schedule") or {}):
        also["schedule"] = schedule
    if options.run_attempts:
        numbers = (*run_attempts.LIMITS, "backoffSeconds")
        off = options.run_attempts == "off"
        also["runAttempts"] = {"enabled": not off, **(dict.fromkeys(numbers) if off else {})}
    if options.auto_disable and not options.auto_disable["failures"]:
        also["autoDisable"] = dict.fromkeys(auto_disable.LIMITS) | options.auto_disable
    return updates.changes(options, CHANGEABLE, also={"properties": also} if also else None)
