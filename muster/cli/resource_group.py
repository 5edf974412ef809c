"""`muster resource-group …`: what is deployed, granted and deleted together."""

import argparse
from typing import Any

from muster.cli import deletes, lookup, output, updates
from muster.cli.arguments import Parser, may_wait, verb, verbs_of
from muster.cli.client import Api, calling
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import TAGS

COLUMNS = ("name", "subscription", "location", "state", "tags")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    one = verb(
        verbs, "list", list_groups, "list resource groups", example="muster resource-group list"
    )
    one.add_argument("--subscription", metavar="NAME", help="default: all that there are")
    _named(verb(verbs, "show", show, "show a resource group",
                example="muster resource-group show fleet"))  # fmt: skip
    one = _named(verb(verbs, "create", create, "create a resource group",
                      example="muster resource-group create fleet --tag team=data"))  # fmt: skip
    one.add_argument("--location", default="local", help="default: local")
    updates.add_settings(one, (TAGS,))
    one = _named(verb(verbs, "update", update, "change the tags of a resource group",
                      example="muster resource-group update fleet --tag team=data"))  # fmt: skip
    updates.add(one, (TAGS,))
    about = "delete a resource group with its servers and job accounts"
    one = _named(
        verb(verbs, "delete", delete, about, example="muster resource-group delete fleet --yes")
    )
    deletes.add(may_wait(one))


def _named(one: Parser) -> Parser:
    one.add_argument("name", metavar="NAME")
    one.add_argument("--subscription", metavar="NAME", help="default: the only one there is")
    return one


def list_groups(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        wanted = options.subscription
        parents = [lookup.subscription(api, wanted)] if wanted else lookup.subscriptions(api)
        items = [each for parent in parents for each in api.all(f"{parent}/resourceGroups")]
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        return _show(options, api.get(_path(api, options)))

    return calling(options, shown)


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        body = {"location": options.location, **updates.given(options, (TAGS,))}
        return _show(options, api.put(_path(api, options), body, new=True))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        changes = updates.changes(options, (TAGS,))
        return _show(options, updates.patched(api, _path(api, options), changes))

    return calling(options, patch)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = _path(api, options)
        what = f"the resource group '{options.name}'"
        deletes.agreed(options, what, lambda: _inside(api, path))
        return deletes.done(api, options, path, options.name)

    return calling(options, gone)


def _inside(api: Api, path: str) -> str:
    of_group = f"{path}/{lookup.SQL}/servers"
    servers = [each["id"] for each in api.all(of_group)]
    inside = {
        "server": [of_group],
        "database": [f"{each}/databases" for each in servers],
        "job account": [f"{each}/jobAgents" for each in servers],
    }
    return deletes.counted(api, inside, deletes.RESOURCES)


def _path(api: Api, options: argparse.Namespace) -> str:
    return lookup.resource_group(api, options.name, options.subscription)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    return [
        item["name"],
        item["id"].split("/")[2],
        item.get("location"),
        (item.get("properties") or {}).get("provisioningState"),
        output.pairs(item.get("tags")),
    ]
