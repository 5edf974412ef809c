"""`… history NAME`: the state changes of a resource, the newest last."""

import argparse
from collections.abc import Callable

from muster.cli import output
from muster.cli.arguments import Parser, count
from muster.cli.client import Api, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("time", "from", "to", "reason", "operation")


def add(made: Parser) -> None:
    made.add_argument("--top", type=count, metavar="N", help="only the newest N")


def show(options: argparse.Namespace, find: Callable[[Api, argparse.Namespace], str]) -> int:
    """Of the resource whose path `find` gives."""

    def listed(api: Api) -> int:
        items = api.all(f"{find(api, options)}/history")
        items = items if options.top is None else items[max(len(items) - options.top, 0) :]
        rows = [
            [moment(each["time"]), each["from"], each["to"], each["reason"], each["operationId"]]
            for each in items
        ]
        output.show(options, {"value": items}, Table(COLUMNS, rows))
        return Exit.SUCCEEDED

    return calling(options, listed)
