"""`muster version`."""

import argparse

from muster.cli.arguments import Parser, epilog
from muster.cli.exits import Exit
from muster.core.version import VERSION


def add(made: Parser) -> None:
    made.epilog = epilog("muster version")
    made.set_defaults(run=show)


def show(_: argparse.Namespace) -> int:
    print(f"muster {VERSION}")
    return Exit.SUCCEEDED
