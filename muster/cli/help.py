"""`muster help [NOUN [VERB …]]`: the same as --help there."""

import argparse

from muster.cli.arguments import Parser, epilog
from muster.cli.exits import Exit


def add(made: Parser) -> None:
    made.add_argument("noun", metavar="NOUN", nargs="?", help="default: all of them")
    made.add_argument("verb", metavar="VERB", nargs="?")
    made.add_argument("below", metavar="VERB", nargs="?", help="as in role assignment create")
    made.epilog = epilog("muster help job create")
    made.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    from muster.cli.main import parser

    words = [word for word in (options.noun, options.verb, options.below) if word]
    parser().parse_args([*words, "--help"])
    return Exit.SUCCEEDED
