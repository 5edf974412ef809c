"""`muster run rerun`: starts a job again on targets of an earlier run."""

import argparse
from typing import Any

from muster.cli import output, run_watch, runs
from muster.cli.arguments import Parser, duration
from muster.cli.client import Api
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.runs import Run
from muster.cli.typed import one_of

KINDS = ("failed", "timedOut", "canceled", "skipped", "unknown", "succeeded")


def add(parser: Parser, target_help: str) -> None:
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--only",
        type=kinds,
        metavar="LIST",
        help=f"targets that ended so: {', '.join(KINDS)}; default: failed,timedOut",
    )
    chosen.add_argument(
        "--failed",
        dest="only",
        action="store_const",
        const=["failed", "timedOut"],
        help="targets that failed or timed out, as without --only and --target",
    )
    chosen.add_argument("--target", action="append", metavar="TARGET", help=target_help)
    parser.add_argument("--step", metavar="NAME", help="of --target, in a run of several steps")
    parser.add_argument(
        "--wait", action="store_true", help="watch the new run and exit with its result"
    )
    parser.add_argument("--timeout", type=duration, help="wait at most so long: 90, 15m, 2h")


def kinds(text: str) -> list[str]:
    """In any case, with or without hyphens."""
    kind = one_of(KINDS)
    return [kind(word) for word in text.split(",")]


def rerun(api: Api, run: Run, options: argparse.Namespace) -> int:
    body: dict[str, Any] = {}
    if options.target:
        items = [runs.target(api, run, target, options.step) for target in options.target]
        body["targets"] = [item["properties"]["targetId"] for item in items]
    elif options.only:
        body["only"] = options.only
    item = api.post(f"{run.path}/rerun", body)
    new = Run(f"{run.path.rpartition('/')[0]}/{item['name']}")
    if options.wait:
        return run_watch.watched(api, new, options)
    row = [new.job, new.id, run.id, item["properties"]["lifecycle"]]
    output.show(options, item, Table(("job", "run", "rerun_of", "lifecycle"), [row]))
    return Exit.SUCCEEDED
