"""`muster diff`: what files state, against what an account has."""

import argparse
import sys
from collections.abc import Callable

from muster.cli import lookup, output
from muster.cli.arguments import EXIT_CODES, Parser, at_place, of_account
from muster.cli.client import Api, Refused, calling
from muster.cli.declared import text
from muster.cli.declared.document import Document, Wrong
from muster.cli.declared.plan import Change, plan
from muster.cli.declared.reader import read
from muster.cli.exits import Exit


def add(made: Parser) -> None:
    of_account(at_place(made))
    made.add_argument(
        "-f",
        "--file",
        action="append",
        required=True,
        metavar="PATH",
        help="a YAML file, a folder of such files, or - for stdin; may be given several times",
    )
    made.add_argument(
        "--update-secrets",
        action="store_true",
        help="passwords and secrets count as changed: they can't be read back",
    )
    made.epilog = f"example:\n  muster {made.name} -f jobs/\n\n{EXIT_CODES}"
    made.set_defaults(run=diff)


def diff(options: argparse.Namespace) -> int:
    def compare(api: Api, documents: list[Document]) -> int:
        changes = _planned(api, options, documents)
        for each in changes:
            print_difference(each)
        differ = any(each.action != "unchanged" for each in changes)
        return Exit.DIFFERS if differ else Exit.SUCCEEDED

    return with_files(options, compare)


def with_files(options: argparse.Namespace, what: Callable[[Api, list[Document]], int]) -> int:
    """The files are read before anything is asked; what is wrong with them is told in a line each."""
    try:
        documents = read(options.file)
        return calling(options, lambda api: what(api, documents))
    except Wrong as wrong:
        output.aside(f"muster: {each}" for each in wrong.problems)
    except Refused as refused:
        output.aside([refused.line])
    return Exit.USAGE


def print_difference(change: Change) -> None:
    document = change.document
    names = f"{document.title} (account)", f"{document.title} ({document.place()})"
    coloured = output.has_colour(sys.stdout)
    for line in text.difference(change.before, change.after, names, coloured=coloured):
        print(line)


def _planned(api: Api, options: argparse.Namespace, documents: list[Document]) -> list[Change]:
    account = lookup.account(api, options)
    return plan(api, account, documents, update_secrets=options.update_secrets)
