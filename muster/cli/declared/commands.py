"""`muster apply` and `muster diff`: what files state, written to an account or compared with it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

from muster.cli import lookup, output
from muster.cli.arguments import EXIT_CODES, Parser, at_place, calls_api, of_account
from muster.cli.client import Api, Refused, calling
from muster.cli.declared import prune, text
from muster.cli.declared.document import Document, Wrong
from muster.cli.declared.plan import Change, Removal, plan
from muster.cli.declared.reader import read
from muster.cli.declared.write import remove, write
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("kind", "name", "result")
DONE = {"create": "created", "update": "updated", "unchanged": "unchanged", "delete": "deleted"}
NOT_APPLIED = "not applied"


def add(made: Parser) -> None:
    {"apply": add_apply, "diff": add_diff}[made.name](made)


def add_diff(made: Parser) -> None:
    at_place(made)
    made.epilog = f"example:\n  muster diff -f jobs/\n\n{EXIT_CODES}"
    made.set_defaults(run=diff)
    _add_options(made)


def add_apply(made: Parser) -> None:
    calls_api(made, apply, example="muster apply -f jobs/")
    _add_options(made)
    made.add_argument(
        "--dry-run", action="store_true", help="write nothing, and show what muster diff shows"
    )
    made.add_argument("--yes", action="store_true", help="do not ask before deleting")


def _add_options(made: Parser) -> None:
    of_account(made)
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
    doomed = made.add_mutually_exclusive_group()
    doomed.add_argument(
        "--prune",
        action="store_true",
        help="delete jobs that muster apply created and that no file states any more",
    )
    doomed.add_argument(
        "--prune-all",
        action="store_true",
        help="delete every job, group, credential and webhook of the account that no file states",
    )


def diff(options: argparse.Namespace) -> int:
    def compare(api: Api, documents: list[Document]) -> int:
        changes, doomed = _planned(api, options, documents)
        return Exit.DIFFERS if _print_differences(changes, doomed) else Exit.SUCCEEDED

    return _with_files(options, compare)


def apply(options: argparse.Namespace) -> int:
    if options.yes and not (options.prune or options.prune_all):
        output.aside(["muster: --yes is about deleting: it needs --prune or --prune-all"])
        return Exit.USAGE
    if options.dry_run and options.output != "table":
        output.aside(["muster: --dry-run prints a diff: leave -o out"])
        return Exit.USAGE

    def run(api: Api, documents: list[Document]) -> int:
        changes, doomed = _planned(api, options, documents)
        if options.dry_run:
            _print_differences(changes, doomed)
            return Exit.SUCCEEDED
        for each in changes:
            if each.secret:
                each.secret.read()  # what is missing shows before the first write
        prune.agreed(options, doomed)
        _write(api, options, changes, doomed)
        return Exit.SUCCEEDED

    return _with_files(options, run)


def _planned(
    api: Api, options: argparse.Namespace, documents: list[Document]
) -> tuple[list[Change], list[Removal]]:
    account = lookup.account(api, options)
    changes = plan(api, account, documents, update_secrets=options.update_secrets)
    if not (options.prune or options.prune_all):
        return changes, []
    return changes, prune.removals(api, account, documents, everything=options.prune_all)


def _write(
    api: Api, options: argparse.Namespace, changes: list[Change], doomed: list[Removal]
) -> None:
    """Stops at the first refusal: what follows may need what was refused. A second apply continues there."""
    everything: list[Change | Removal] = [*changes, *doomed]
    rows = [[each.document.kind.noun, each.name, NOT_APPLIED] for each in everything]
    try:
        for row, change in zip(rows, everything, strict=True):
            row[-1] = "failed"
            if isinstance(change, Removal):
                remove(api, change)
            elif change.action != "unchanged":
                write(api, change)
            row[-1] = DONE[change.action]
    finally:
        _show(options, rows)


def _show(options: argparse.Namespace, rows: Sequence[Sequence[Any]]) -> None:
    results = [row[-1] for row in rows]
    counts = ", ".join(f"{results.count(each)} {each}" for each in dict.fromkeys(results))
    document = {"value": [dict(zip(COLUMNS, row, strict=True)) for row in rows]}
    output.show(options, document, Table(COLUMNS, rows), notes=[f"{counts}."])


def _print_differences(changes: list[Change], doomed: list[Removal]) -> bool:
    coloured = output.has_colour(sys.stdout)
    differing: list[Change | Removal] = [each for each in changes if each.action != "unchanged"]
    for each in (*differing, *doomed):
        where = each.document.place() if isinstance(each, Change) else "no file"
        names = f"{each.document.title} (account)", f"{each.document.title} ({where})"
        for line in text.difference(each.before, each.after, names, coloured=coloured):
            print(line)
    return bool(differing or doomed)


def _with_files(options: argparse.Namespace, what: Callable[[Api, list[Document]], int]) -> int:
    """The files are read before anything is asked; what is wrong with them is told in a line each."""
    try:
        documents = read(options.file)
        return calling(options, lambda api: what(api, documents))
    except Wrong as wrong:
        output.aside(f"muster: {each}" for each in wrong.problems)
    except Refused as refused:
        output.aside([refused.line])
    return Exit.USAGE
