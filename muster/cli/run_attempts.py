"""Attempts of a run on the command line: options of a job or an account, and the attempts that a run has had."""

import argparse
from typing import Any

from muster.cli import output, updates
from muster.cli.arguments import Parser, count, duration
from muster.cli.client import Api, Refused
from muster.cli.exits import Exit
from muster.cli.output import Table, moment
from muster.cli.runs import Run
from muster.cli.updates import Setting, setting

COLUMNS = (
    "attempt",
    "lifecycle",
    "started",
    "ended",
    "newly_succeeded",
    "remaining",
    "next_attempt",
    "reached_limit",
)
LIMITS = {
    "maxSuccessiveWithoutProgress": "max-attempts-in-a-row",
    "maxWithoutProgress": "max-attempts-without-progress",
    "maxWithProgress": "max-attempts-with-progress",
}


def settings(whose: str) -> tuple[Setting, ...]:
    """Of a job or an account, for create and update."""
    place = "properties.runAttempts"
    return (
        setting(
            "--run-attempts",
            f"{place}.enabled",
            reset=place,
            read=lambda text: text == "on",
            choices=("on", "off"),
            help=f"on: a run of {whose} repeats its targets that have not succeeded, in further attempts",
        ),
        setting(
            "--max-attempts-in-a-row",
            f"{place}.maxSuccessiveWithoutProgress",
            type=count,
            metavar="N",
            help="attempts in a row in which no target newly succeeded; default: 5",
        ),
        setting(
            "--max-attempts-without-progress",
            f"{place}.maxWithoutProgress",
            type=count,
            metavar="N",
            help="attempts in which no target newly succeeded; default: 10",
        ),
        setting(
            "--max-attempts-with-progress",
            f"{place}.maxWithProgress",
            type=count,
            metavar="N",
            help="failed attempts in which a target newly succeeded; default: 20",
        ),
        setting(
            "--attempt-backoff",
            f"{place}.backoffSeconds",
            type=durations,
            metavar="DURATION,…",
            help="pauses after successive attempts in which none newly succeeded; default: 10s,30s,90s,270s",
        ),
    )


def add(parser: Parser, *, of_account: bool = False) -> None:
    whose = "jobs without such an option" if of_account else "the job"
    updates.add_settings(parser, settings(whose))


def read(options: argparse.Namespace) -> dict[str, Any] | None:
    """The property `runAttempts`; None if no option is given."""
    numbers = {name: getattr(options, option.replace("-", "_")) for name, option in LIMITS.items()}
    values = {**numbers, "backoffSeconds": options.attempt_backoff}
    values = {name: value for name, value in values.items() if value is not None}
    if options.run_attempts is None and values:
        raise Refused(
            "--max-attempts-in-a-row, --max-attempts-without-progress, --max-attempts-with-progress and"
            " --attempt-backoff need --run-attempts"
        )
    return (
        None
        if options.run_attempts is None
        else {"enabled": options.run_attempts == "on", **values}
    )


def describe(rules: dict[str, Any] | None) -> list[str]:
    """One line for people; nothing if the account decides."""
    if not rules:
        return []
    values = [f"{name} {value}" for name, value in rules.items() if name != "enabled"]
    return [f"run attempts: {', '.join(['on' if rules.get('enabled') else 'off', *values])}"]


def show(api: Api, run: Run, options: argparse.Namespace) -> int:
    item = api.get(run.path)
    attempts = item["properties"].get("runAttempts") or []
    notes = [] if attempts else ["The run has no attempts: its job does not turn them on."]
    newest = attempts[-1] if attempts else {}
    if newest.get("message"):
        notes = [newest["message"]]
    output.show(
        options,
        {"value": attempts},
        Table(
            COLUMNS,
            [_row(each) for each in attempts],
            optional=("next_attempt", "reached_limit"),
        ),
        notes=notes,
    )
    return Exit.SUCCEEDED


def _row(attempt: dict[str, Any]) -> list[Any]:
    times = [moment(attempt.get(name)) for name in ("startTime", "endTime", "nextAttemptTime")]
    started, ended, following = times
    counts = [attempt.get(name) for name in ("newlySucceeded", "remaining")]
    return [
        attempt["attempt"],
        attempt["lifecycle"],
        started,
        ended,
        *counts,
        following,
        attempt.get("reachedLimit"),
    ]


def durations(text: str) -> list[int]:
    return [round(duration(part.strip())) for part in text.split(",")]
