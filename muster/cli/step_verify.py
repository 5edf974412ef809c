"""The verify query of a step on the command line."""

import argparse
from typing import Any

from muster.cli.arguments import Parser, add_choice
from muster.cli.client import Refused


def add(parser: Parser) -> None:
    parser.add_argument("--verify", metavar="SQL", help="a query that is asked after the commit")
    add_choice(
        parser,
        "--verify-expect",
        choices=("nonEmpty", "empty", "true"),
        help="what it must return; default: nonEmpty",
    )
    parser.add_argument("--verify-value", metavar="TEXT", help="the only value that it must return")
    parser.add_argument(
        "--skip-if-holds",
        action="store_true",
        help="ask --verify before the script too, and do nothing if it holds",
    )


def read(options: argparse.Namespace) -> dict[str, Any] | None:
    value = options.verify_value
    rules = {
        "expect": options.verify_expect or (None if value is None else "value"),
        "value": value,
        "skipIfHolds": options.skip_if_holds or None,
    }
    rules = {name: value for name, value in rules.items() if value is not None}
    if options.verify is None and rules:
        raise Refused("--verify-expect, --verify-value and --skip-if-holds belong to --verify SQL")
    if options.verify_expect and value is not None:
        raise Refused("either --verify-expect or --verify-value")
    return None if options.verify is None else {"sql": options.verify, **rules}
