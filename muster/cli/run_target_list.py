"""The targets of a run: filters, and a row for each."""

import argparse
from typing import Any

from muster.cli import output, progress
from muster.cli.arguments import Parser, count
from muster.cli.client import Api, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.runs import Run
from muster.cli.typed import lifecycles

COLUMNS = (
    "step",
    "server",
    "database",
    "schema",
    "lifecycle",
    "attempts",
    "duration",
    "rows",
    "reason",
    "message",
)
OPTIONAL = ("schema", "duration", "rows", "reason")


def add_filters(parser: Parser) -> None:
    parser.add_argument(
        "--lifecycle", type=lifecycles, help="only targets in it, such as failed,timed-out"
    )
    parser.add_argument("--server", metavar="NAME", help="only targets on it")
    parser.add_argument("--wave", type=count, metavar="N", help="only targets of this wave")


def is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.lifecycle or options.server or options.wave is not None)


def show(api: Api, run: Run, options: argparse.Namespace) -> Exit:
    """`options` may lack filters that the command does not have."""
    step = getattr(options, "step", None)
    path = under(run.path, "steps", step, "targets") if step else f"{run.path}/targets"
    query = {
        "lifecycle": options.lifecycle,
        "server": options.server,
        "wave": options.wave,
        "isActive": "true" if getattr(options, "active", False) else None,
        "fingerprint": getattr(options, "fingerprint", None),
    }
    targets = api.all(path, query)
    table = Table(COLUMNS, [_row(each) for each in targets], optional=OPTIONAL)
    output.show(options, {"value": targets}, table)
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    where = properties.get("target") or {}
    return [
        properties.get("stepName"),
        where.get("serverName"),
        where.get("databaseName"),
        where.get("schemaName"),
        properties["lifecycle"],
        properties.get("currentAttempts"),
        progress.took(properties),
        properties.get("rowsAffected"),
        properties.get("endReason") or properties.get("waitReason"),
        properties.get("lastMessage"),
    ]
