"""Lists of runs: filters, and a row for each."""

import argparse
from typing import Any

from muster.cli import lookup, output, runs
from muster.cli.arguments import Parser, count
from muster.cli.client import Api, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment
from muster.cli.runs import Run
from muster.cli.times import past

COLUMNS = ("job", "run", "lifecycle", "created", "started", "ended", "attempt", "message")


def add(parser: Parser) -> None:
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
        "createTimeMin": options.since,
        "createTimeMax": options.until,
    }
    items = api.all(f"{path}/executions", query)
    rows = [_row(runs.of_item(account, each), each["properties"]) for each in items]
    output.show(options, {"value": items}, Table(COLUMNS, rows, optional=("attempt",)))
    return Exit.SUCCEEDED


def _row(run: Run, properties: dict[str, Any]) -> list[Any]:
    times = (moment(properties.get(name)) for name in ("createTime", "startTime", "endTime"))
    attempt = properties.get("currentAttempts") or None
    return [
        run.job,
        run.id,
        properties["lifecycle"],
        *times,
        attempt,
        properties.get("lastMessage"),
    ]
