"""`muster help [NOUN [VERB]]`: the same as --help there."""

import argparse

from muster.cli.arguments import Parser
from muster.cli.exits import Exit


def add(made: Parser) -> None:
    made.add_argument("noun", metavar="NOUN", nargs="?", help="default: all of them")
    made.add_argument("verb", metavar="VERB", nargs="?")
    made.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    from muster.cli.main import parser

    words = [word for word in (options.noun, options.verb) if word]
    parser().parse_args([*words, "--help"])
    return Exit.SUCCEEDED
