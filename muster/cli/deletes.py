"""How every `delete` asks: on a terminal, with what goes along; without one only `--yes` deletes."""

import argparse
from collections.abc import Mapping

from muster.cli import inputs, output
from muster.cli.arguments import Parser
from muster.cli.client import NOTHING, Api, Query, Refused
from muster.cli.exits import Exit
from muster.cli.output import Table

FOR_EVER = "for ever"
RESOURCES = "databases of registered servers stay where their deletionPolicy is not Drop"


def add(made: Parser) -> None:
    made.add_argument("--yes", action="store_true", help="do not ask; needed without a terminal")


def agreed(options: argparse.Namespace, what: str, along: str = "") -> None:
    """`along`: what goes with it, or what stays."""
    if options.yes:
        return
    if not inputs.can_ask():
        raise Refused("deleting without a terminal needs --yes")
    if not inputs.agrees(f"Delete {what}{f': {along}' if along else ''}?"):
        raise Refused("nothing was deleted")


def done(
    api: Api, options: argparse.Namespace, path: str, name: str, query: Query = NOTHING
) -> int:
    api.delete(path, query)
    output.show(options, {"deleted": name}, Table(("deleted",), [[name]]))
    return Exit.SUCCEEDED


def counted(items: Mapping[str, int], rest: str = "") -> str:
    """`2 servers, 1 account and …`; nothing of what there is none."""
    parts = [output.many(number, what) for what, number in items.items() if number]
    return ", ".join([*parts, *([rest] if rest else [])])
