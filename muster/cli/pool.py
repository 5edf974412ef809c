"""`muster pool …`: elastic pools, databases of one server that share a budget."""

import argparse
from typing import Any

from muster.cli import deletes, lookup, output, updates
from muster.cli.arguments import Parser, count, verb, verbs_of
from muster.cli.client import Api, calling
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import LABELS, TAGS, setting

COLUMNS = (
    "server", "name", "state", "databases", "pattern", "max_connections", "slots_per_database", "labels",
)  # fmt: skip
SETTINGS = (
    setting(
        "--database",
        "properties.databases",
        action="append",
        metavar="DATABASE",
        help="the whole list: may be given several times; default: by pattern and membership only",
    ),
    setting(
        "--pattern", "properties.databasePattern", metavar="PATTERN", help="such as 'tenant_*'"
    ),
    setting(
        "--max-connections",
        "properties.maxConnections",
        type=count,
        metavar="N",
        help="for all sessions in its databases; default: no limit but the server's",
    ),
    setting(
        "--slots-per-database",
        "properties.slotsPerDatabase",
        type=count,
        metavar="N",
        help="targets that run at once in one database",
    ),
    LABELS,
    TAGS,
)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    example = "muster pool list --server eu1"
    one = verb(verbs, "list", list_pools, "list elastic pools", example=example)
    one.add_argument("--server", metavar="SERVER", help="default: all servers")
    _named(verb(verbs, "show", show, "show a pool", example="muster pool show eu1/gold"))
    example = "muster pool create eu1/gold --pattern 'gold_*' --max-connections 5"
    one = _named(verb(verbs, "create", create, "create a pool", example=example))
    updates.add_settings(one, SETTINGS)
    example = "muster pool update eu1/gold --max-connections 8 --reset pattern"
    one = _named(verb(verbs, "update", update, "change what is named of a pool", example=example))
    updates.add(one, SETTINGS)
    about = "delete a pool; databases that name it as theirs must leave it first"
    one = _named(verb(verbs, "delete", delete, about, example="muster pool delete eu1/gold --yes"))
    deletes.add(one)


def _named(one: Parser) -> Parser:
    one.add_argument("name", metavar="SERVER/POOL")
    return one


def list_pools(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = lookup.of_servers(api, options.server, "elasticPools")
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
        server = api.get(path.rpartition("/elasticPools/")[0])
        body = {"location": server["location"], **updates.given(options, SETTINGS)}
        return _show(options, api.put(path, body, new=True))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        changes = updates.changes(options, SETTINGS)
        return _show(options, updates.patched(api, _path(api, options), changes))

    return calling(options, patch)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = _path(api, options)
        along = "its databases stay, without its budget"
        deletes.agreed(options, f"the pool '{options.name}'", lambda: along)
        return deletes.done(api, options, path, options.name)

    return calling(options, gone)


def _path(api: Api, options: argparse.Namespace) -> str:
    return lookup.on_server(api, options.name, "elasticPools", "pool")


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item.get("properties") or {}
    return [
        item["id"].split("/")[-3],
        item["name"],
        properties.get("state"),
        ", ".join(properties.get("databases") or ()) or None,
        *(
            properties.get(name)
            for name in ("databasePattern", "maxConnections", "slotsPerDatabase")
        ),
        output.pairs(properties.get("labels")),
    ]
