"""How every `delete` asks: on a terminal, with what goes along; without one only `--yes` deletes."""

import argparse
from collections.abc import Callable, Mapping

from muster.cli import inputs, output
from muster.cli.arguments import Parser
from muster.cli.client import NOTHING, Api, Query, Refused
from muster.cli.exits import Exit
from muster.cli.output import Table

FOR_EVER = "for ever"
RESOURCES = "databases of registered servers stay on them, those of embedded servers are removed"


def add(made: Parser) -> None:
    made.add_argument("--yes", action="store_true", help="do not ask; needed without a terminal")


def agreed(options: argparse.Namespace, what: str, along: Callable[[], str] = str) -> None:
    """`along` says what goes with it, or what stays; it is asked for only where a user reads it."""
    if options.yes:
        return
    if not inputs.can_ask():
        raise Refused("deleting without a terminal needs --yes")
    more = along()
    if not inputs.agrees(f"Delete {what}{f': {more}' if more else ''}?"):
        raise Refused("nothing was deleted")


def done(
    api: Api, options: argparse.Namespace, path: str, name: str, query: Query = NOTHING
) -> int:
    api.delete(path, query)
    output.show(options, {"deleted": name}, Table(("deleted",), [[name]]))
    return Exit.SUCCEEDED


def counted(api: Api, collections: Mapping[str, list[str]], rest: str = "") -> str:
    """`2 servers, 1 account, …`: what there is in these lists, each with its paths; then the rest."""
    numbers = {what: sum(len(api.all(each)) for each in at) for what, at in collections.items()}
    parts = [output.many(number, what) for what, number in numbers.items() if number]
    return ", ".join([*parts, *([rest] if rest else [])])
