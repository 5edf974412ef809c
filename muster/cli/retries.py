"""`muster run retry`: retries targets of a run that goes on."""

import argparse
from typing import Any

from muster.cli import output, run_watch, runs
from muster.cli.arguments import Parser, duration
from muster.cli.client import Api
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.runs import Run


def add(parser: Parser, target_help: str) -> None:
    parser.add_argument(
        "--target", action="append", required=True, metavar="TARGET", help=target_help
    )
    parser.add_argument("--step", metavar="NAME", help="of --target, in a run of several steps")
    parser.add_argument(
        "--wait", action="store_true", help="watch the run and exit with its result"
    )
    parser.add_argument("--timeout", type=duration, help="wait at most so long: 90, 15m, 2h")


def retry(api: Api, run: Run, options: argparse.Namespace) -> int:
    """Every target is found before the first one is retried."""
    found = [runs.target(api, run, target, options.step) for target in options.target]
    items = [api.post(f"{runs.target_path(run, item)}/retry") for item in found]
    if options.wait:
        return run_watch.watched(api, run, options)
    rows = [
        [run.job, run.id, item["properties"]["stepName"], runs.name(item), *_state(item)]
        for item in items
    ]
    columns = ("job", "run", "step", "target", "lifecycle", "reason")
    held = any(item["properties"].get("waitReason") == "Halted" for item in items)
    notes = [f"The run is halted: muster run resume {run.id} goes on with it."] if held else []
    output.show(options, {"value": items}, Table(columns, rows, optional=("reason",)), notes=notes)
    return Exit.SUCCEEDED


def _state(item: dict[str, Any]) -> list[str | None]:
    return [item["properties"]["lifecycle"], item["properties"].get("waitReason")]
