"""`muster lock …`: locks against changes and deletion, at any scope."""

import argparse
from typing import Any

from muster.cli import deletes, output, scopes, updates
from muster.cli.arguments import Parser, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import setting

LOCKS = "/providers/Microsoft.Authorization/locks"
COLUMNS = ("name", "level", "scope", "notes")
SETTINGS = (
    setting(
        "--level",
        "properties.level",
        reset=False,
        choices=("CanNotDelete", "ReadOnly"),
        help="CanNotDelete: changes are allowed; ReadOnly: neither",
    ),
    setting("--notes", "properties.notes", metavar="TEXT", help="why, for who meets the lock"),
)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the locks that hold at a scope: made there, above it and below it"
    one = verb(verbs, "list", list_locks, about, example="muster lock list --resource-group fleet")
    scopes.add(one, "that is looked at")
    _named(verb(verbs, "show", show, "show a lock", example="muster lock show keep --server eu1"))
    about = "lock a scope and everything below it"
    example = (
        'muster lock create keep --level can-not-delete --server eu1 --notes "Holds production."'
    )
    one = _named(verb(verbs, "create", create, about, example=example), writes=True)
    updates.add_settings(one, SETTINGS)
    about = "change what is named of a lock"
    example = "muster lock update keep --level read-only --server eu1"
    one = _named(verb(verbs, "update", update, about, example=example), writes=True)
    updates.add(one, SETTINGS)
    about, example = "remove a lock", "muster lock delete keep --server eu1 --yes"
    deletes.add(_named(verb(verbs, "delete", delete, about, example=example), writes=True))


def _named(one: Parser, *, writes: bool = False) -> Parser:
    """What writes needs its scope: a lock of the whole installation stops everyone."""
    one.add_argument("name", metavar="NAME")
    scopes.add(one, "that is locked", None if writes else "the whole installation")
    return one


def list_locks(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(f"{scopes.of(api, options)}{LOCKS}")
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    return calling(
        options, lambda api: _show(options, api.get(_path(options, scopes.of(api, options))))
    )


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        if not options.level:
            raise Refused("a lock needs --level CanNotDelete or --level ReadOnly")
        body = updates.given(options, SETTINGS)
        return _show(options, api.put(_path(options, scopes.named(api, options)), body, new=True))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        patch = updates.changes(options, SETTINGS)
        path = _path(options, scopes.named(api, options))
        return _show(options, updates.replaced(api, path, patch))

    return calling(options, put)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = _path(options, scopes.named(api, options))
        deletes.agreed(options, f"the lock '{options.name}' at {scopes.shown(_scope(path))}")
        return deletes.done(api, options, path, options.name)

    return calling(options, gone)


def _path(options: argparse.Namespace, scope: str) -> str:
    return under(f"{scope}{LOCKS}", options.name)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    scope = scopes.shown(_scope(item["id"]))
    return [item["name"], properties["level"], scope, properties.get("notes")]


def _scope(id: str) -> str:
    return id.rpartition(LOCKS)[0]
