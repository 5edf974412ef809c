"""Lists of runs: filters, and a row for each."""

import argparse
from typing import Any

from muster.cli import lookup, output, progress, run_origin, runs
from muster.cli.arguments import Parser, count
from muster.cli.client import Api, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment
from muster.cli.runs import Run
from muster.cli.times import past
from muster.cli.typed import lifecycles_of_runs

COLUMNS = (
    "job",
    "run",
    "lifecycle",
    "targets",
    "rows",
    "created",
    "started",
    "ended",
    "duration",
    "origin",
    "attempt",
    "message",
)
OPTIONAL = ("targets", "rows", "duration", "attempt")
NOT_FOR_PEOPLE = ("started", "ended")


def add(parser: Parser) -> None:
    parser.add_argument(
        "--lifecycle",
        type=lifecycles_of_runs,
        metavar="LIST",
        help="only these, in any case, such as failed,timed-out or running",
    )
    parser.add_argument("--active", action="store_true", help="only those that have not finished")
    parser.add_argument(
        "--since", type=past, metavar="TIME", help="created since then: 2h ago as 2h, or a time"
    )
    parser.add_argument("--until", type=past, metavar="TIME", help="created before that")
    parser.add_argument("--deleted", action="store_true", help="also of jobs that were deleted")
    parser.add_argument("--top", type=count, default=20, metavar="N", help="0: all; default: 20")


def show(api: Api, options: argparse.Namespace, job: str | None) -> int:
    account = lookup.account(api, options)
    path = under(account, "jobs", job) if job else account
    query = {
        "$top": options.top or None,
        "isActive": "true" if options.active else None,
        "includeDeleted": "true" if options.deleted else None,
        "lifecycle": options.lifecycle,
        "createTimeMin": options.since,
        "createTimeMax": options.until,
    }
    items = api.all(f"{path}/executions", query)
    rows = [_row(runs.of_item(account, each), each["properties"]) for each in items]
    output.show(options, {"value": items}, Table(COLUMNS, rows, OPTIONAL, NOT_FOR_PEOPLE))
    return Exit.SUCCEEDED


def _row(run: Run, properties: dict[str, Any]) -> list[Any]:
    times = [moment(properties.get(name)) for name in ("createTime", "startTime", "endTime")]
    return [
        run.job,
        run.id,
        properties["lifecycle"],
        succeeded(properties.get("targets")),
        properties.get("rowsAffected"),
        *times,
        progress.took(properties),
        run_origin.brief(properties),
        properties.get("currentAttempts") or None,
        properties.get("lastMessage"),
    ]


def succeeded(targets: dict[str, int] | None) -> str | None:
    """`59 of 60`; of a large run that goes on only how many there are."""
    if not targets or not targets["total"]:
        return None
    if "succeeded" not in targets:
        return f"of {targets['total']}"
    return f"{targets['succeeded']} of {targets['total']}"
