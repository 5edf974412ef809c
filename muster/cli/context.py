"""`muster context …`: the APIs that `muster login` kept, and which of them commands use."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from muster.cli import contexts, output
from muster.cli.arguments import Parser, at_place, command, prints, verbs_of
from muster.cli.client import Refused
from muster.cli.contexts import Context, Contexts
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("current", "name", "url", "account", "ca_file", "has_token")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    prints(
        command(verbs, "list", "list the contexts"), list_contexts, example="muster context list"
    )
    about = "show where a command would go now, and whose token it would use"
    made = at_place(prints(command(verbs, "show", about), show, example="muster context show"))
    made.add_argument("--account", metavar="ACCOUNT", help="as commands take it")
    made = prints(
        command(verbs, "use", "use a context from now on"), use, example="muster context use prod"
    )
    made.add_argument("name", metavar="NAME")
    made = prints(
        command(verbs, "delete", "delete a context and its token"),
        delete,
        example="muster context delete test",
    )
    made.add_argument("name", metavar="NAME")


def list_contexts(options: argparse.Namespace) -> int:
    def listed(kept: Contexts) -> int:
        rows = [_document(kept, name, each) for name, each in sorted(kept.by_name.items())]
        cells = [["*" if row["current"] else "", *list(row.values())[1:]] for row in rows]
        output.show(options, {"value": rows}, Table(COLUMNS, cells, optional=("ca_file",)))
        return Exit.SUCCEEDED

    return _with_contexts(listed)


def show(options: argparse.Namespace) -> int:
    def shown(_: Contexts) -> int:
        place = contexts.place(options)
        document = {
            "context": place.context,
            "url": place.url,
            "account": options.account or place.account,
            "ca_file": str(place.ca_file) if place.ca_file else None,
            "token_from": place.token_from,
        }
        output.show(options, document, Table(list(document), [list(document.values())]))
        return Exit.SUCCEEDED

    return _with_contexts(shown)


def use(options: argparse.Namespace) -> int:
    def used(kept: Contexts) -> int:
        context = kept.named(options.name)
        contexts.write(replace(kept, current=options.name))
        document = _document(replace(kept, current=options.name), options.name, context)
        output.show(options, document, Table(COLUMNS[1:4], [list(document.values())[1:4]]))
        return Exit.SUCCEEDED

    return _with_contexts(used)


def delete(options: argparse.Namespace) -> int:
    def deleted(kept: Contexts) -> int:
        kept.named(options.name)
        contexts.write(kept.without(options.name))
        output.show(options, {"deleted": options.name}, Table(("deleted",), [[options.name]]))
        return Exit.SUCCEEDED

    return _with_contexts(deleted)


def _document(kept: Contexts, name: str, context: Context) -> dict[str, Any]:
    values = (name == kept.current, name, context.url, context.account, context.ca_file)
    return dict(zip(COLUMNS, (*values, bool(context.token)), strict=True))


def _with_contexts(what: Callable[[Contexts], int]) -> int:
    try:
        return what(contexts.read())
    except Refused as refused:
        print(refused.line, file=sys.stderr)
        return refused.code
