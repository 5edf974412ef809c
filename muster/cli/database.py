"""`muster database …`: databases that Muster creates on servers, and their labels."""

import argparse
from typing import Any

from muster.cli import deletes, histories, lookup, output, updates
from muster.cli.arguments import Parser, may_wait, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import LABELS, TAGS, setting

COLUMNS = ("server", "name", "status", "pool", "deletion_policy", "size_bytes", "labels")
FORCED = {"forceDeletionTypes": "Microsoft.Sql/servers/databases"}
DELETION_POLICY = setting(
    "--deletion-policy",
    "properties.deletionPolicy",
    choices=("Retain", "Drop"),
    help="what delete does with the database itself; default: as its server says",
)
POOL = setting(
    "--pool", "properties.elasticPoolId", metavar="POOL", help="of the same server; default: none"
)
SETTINGS = (LABELS, DELETION_POLICY, POOL, TAGS)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list databases that were created here; 'server discover' lists all that there are"
    one = verb(verbs, "list", list_databases, about, example="muster database list --server eu1")
    one.add_argument("--server", metavar="SERVER", help="default: all servers")
    example = "muster database show eu1/tenant_7"
    _named(verb(verbs, "show", show, "show a database", example=example))
    about = "create a database, or register one that exists"
    example = "muster database create eu1/tenant_7 --label tier=gold"
    one = _named(verb(verbs, "create", create, about, example=example))
    may_wait(one)
    updates.add_settings(one, SETTINGS)
    about = "change what is named of a database"
    example = "muster database update eu1/tenant_7 --label tier=gold --remove-label trial"
    one = _named(verb(verbs, "update", update, about, example=example))
    may_wait(one)
    updates.add(one, SETTINGS)
    about = "delete a database; its deletion policy says whether it is dropped"
    example = "muster database delete eu1/tenant_7 --yes"
    one = _named(verb(verbs, "delete", delete, about, example=example))
    about = "drop it also while it is used or holds rows"
    one.add_argument("--force", action="store_true", help=about)
    deletes.add(may_wait(one))
    about = "list the state changes of a database"
    example = "muster database history eu1/tenant_7"
    histories.add(_named(verb(verbs, "history", history, about, example=example)))


def _named(one: Parser) -> Parser:
    one.add_argument("name", metavar="SERVER/DATABASE")
    return one


def list_databases(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = lookup.of_servers(api, options.server, "databases")
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        return _show(options, api.get(_path(api, options)))

    return calling(options, shown)


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        path = _path(api, options)
        body = _with_pool(path, updates.given(options, SETTINGS))
        server = api.get(path.rpartition("/databases/")[0])
        return _show(options, api.put(path, {"location": server["location"], **body}, new=True))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        changes = updates.changes(options, SETTINGS)
        path = _path(api, options)
        return _show(options, updates.patched(api, path, _with_pool(path, changes)))

    return calling(options, patch)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = _path(api, options)
        deletes.agreed(options, f"the database '{options.name}'", lambda: _becomes(api, path))
        return deletes.done(api, options, path, options.name, FORCED if options.force else {})

    return calling(options, gone)


def _becomes(api: Api, path: str) -> str:
    """What existed before is dropped only by a policy of its own."""
    database = api.get(path)["properties"]
    server = api.get(path.rpartition("/databases/")[0])["properties"]
    policy = database.get("deletionPolicy")
    if not database.get("adopted"):
        default = "Drop" if server.get("embedded") else "Retain"
        policy = policy or server.get("deletionPolicy") or default
    drops = policy == "Drop"
    return "it is dropped, with all its rows" if drops else "it stays on its server, unmanaged"


def history(options: argparse.Namespace) -> int:
    return histories.show(options, _path)


def _path(api: Api, options: argparse.Namespace) -> str:
    return lookup.on_server(api, options.name, "databases", "database")


def _with_pool(path: str, document: dict[str, Any]) -> dict[str, Any]:
    """The API takes the id of the pool."""
    properties = document.get("properties") or {}
    pool = properties.get(POOL.path.rpartition(".")[2])
    if pool:
        server = path.rpartition("/databases/")[0]
        properties["elasticPoolId"] = under(server, "elasticPools", pool)
    return document


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    table = Table(COLUMNS, [_row(item)])
    output.show(options, item, table, notes=output.conditions(item))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item.get("properties") or {}
    pool = properties.get("elasticPoolId")
    return [
        item["id"].split("/")[-3],
        item["name"],
        properties.get("status"),
        pool and pool.rpartition("/")[2],
        properties.get("deletionPolicy"),
        properties.get("sizeBytes"),
        output.pairs(properties.get("labels")),
    ]
