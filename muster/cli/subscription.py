"""`muster subscription …`: what resource groups belong to."""

import argparse
from typing import Any

from muster.cli import deletes, lookup, output, updates
from muster.cli.arguments import Parser, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import TAGS, setting

COLUMNS = ("name", "display_name", "state", "tags")
SETTINGS = (
    setting("--display-name", "displayName", metavar="TEXT", help="default: its name"),
    TAGS,
)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the subscriptions that the token can see"
    verb(verbs, "list", list_subscriptions, about, example="muster subscription list")
    one = verb(
        verbs, "show", show, "show a subscription", example="muster subscription show production"
    )
    one.add_argument("name", metavar="NAME")
    one = verb(
        verbs, "create", create, "create a subscription",
        example='muster subscription create production --display-name "All regions"',
    )  # fmt: skip
    one.add_argument("name", metavar="NAME")
    updates.add_settings(one, SETTINGS)
    one = verb(
        verbs, "update", update, "change what is named of a subscription",
        example="muster subscription update production --tag team=data",
    )  # fmt: skip
    one.add_argument("name", metavar="NAME")
    updates.add(one, SETTINGS)
    about = "delete a subscription for ever, with its resource groups; its name is not free again"
    one = verb(verbs, "delete", delete, about, example="muster subscription delete old-tests --yes")
    one.add_argument("name", metavar="NAME")
    deletes.add(one)


def list_subscriptions(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all("/subscriptions")
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        return _show(options, api.get(under("/subscriptions", options.name)))

    return calling(options, shown)


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        body = updates.given(options, SETTINGS)
        return _show(options, api.put(under("/subscriptions", options.name), body, new=True))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        patch = updates.changes(options, SETTINGS)
        return _show(options, updates.replaced(api, under("/subscriptions", options.name), patch))

    return calling(options, put)


def delete(options: argparse.Namespace) -> int:
    """REST has no DELETE of it: the state Deleted is for ever."""

    def put(api: Api) -> int:
        path = under("/subscriptions", options.name)
        inside = {
            "resource group": [f"{path}/resourceGroups"],
            "server": [f"{path}/{lookup.SQL}/servers"],
        }
        what = f"the subscription '{options.name}'"
        deletes.agreed(options, what, lambda: deletes.counted(api, inside, deletes.FOR_EVER))
        return _show(options, updates.replaced(api, path, {"state": "Deleted"}))

    return calling(options, put)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    name = item["id"].rsplit("/", 1)[-1]
    return [name, item.get("displayName"), item.get("state"), output.pairs(item.get("tags"))]
