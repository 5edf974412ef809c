"""Finds accounts by name, and the subscription and group of a server."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

from muster.cli import inputs, names
from muster.cli.client import Api, Refused, under
from muster.cli.exits import Exit

SQL = "providers/Microsoft.Sql"
PARALLEL = 8  # lists that are asked for at once: accounts are listed server by server


def subscriptions(api: Api) -> list[str]:
    return [str(each["id"]) for each in api.all("/subscriptions")]


def subscription(api: Api, name: str | None) -> str:
    """The one that is named, or the only one there is."""
    if name:
        return under("/subscriptions", name)
    return _only(api, "/subscriptions", "subscription", "--subscription")


def resource_group(api: Api, name: str, of: str | None) -> str:
    """By its name in a subscription, or its id."""
    if name.startswith("/"):
        return name.rstrip("/")
    return under(subscription(api, of), "resourceGroups", name)


def servers(api: Api) -> list[dict[str, Any]]:
    """All that the token can see."""
    return [each for one in subscriptions(api) for each in api.all(f"{one}/{SQL}/servers")]


def on_server(api: Api, text: str, collection: str, what: str) -> str:
    """The id of SERVER/NAME, such as a database."""
    if text.startswith("/"):
        return text.rstrip("/")
    on, _, name = text.partition("/")
    if not (on and name):
        raise Refused(f"'{text}' is no {what}: expected SERVER/{what.upper()}")
    return under(server(api, on), collection, name)


def accounts(api: Api, server: str | None = None) -> list[dict[str, Any]]:
    """All that the token can see, or those on one server."""
    return _below(
        api, [each["id"] for each in servers(api) if _same(each["name"], server)], "jobAgents"
    )


def of_servers(api: Api, name: str | None, collection: str) -> list[dict[str, Any]]:
    """What there is of a kind on the one server, or on all that the token can see."""
    on = [server(api, name)] if name else [each["id"] for each in servers(api)]
    return _below(api, on, collection)


def account(api: Api, options: argparse.Namespace) -> str:
    """The id of the one account that is meant."""
    ids = named(api, options.account) if options.account else [each["id"] for each in accounts(api)]
    if not ids:
        raise Refused("there is no account that this token can see", Exit.NOT_FOUND)
    if len(ids) > 1:
        names = ", ".join(sorted(map(_short, ids)))
        raise Refused(f"which account? Use --account or set MUSTER_ACCOUNT: {names}")
    return ids[0]


def named(api: Api, wanted: str) -> list[str]:
    """An id as it is; for a name, every account of that name."""
    if wanted.startswith("/"):
        return [wanted.rstrip("/")]
    server, _, name = wanted.rpartition("/")
    candidates = accounts(api, server=server or None)
    ids = [each["id"] for each in candidates if _same(each["name"], name)]
    if not ids:
        near = names.near(name, [each["name"] for each in candidates])
        raise Refused(f"there is no account '{wanted}'{near}", Exit.NOT_FOUND)
    return ids


def server(api: Api, name: str) -> str:
    """The id of a server: names are unique in an installation."""
    if name.startswith("/"):
        return name.rstrip("/")
    candidates = servers(api)
    for each in candidates:
        if _same(each["name"], name):
            return str(each["id"])
    raise names.absent("server", name, [each["name"] for each in candidates])


def group(api: Api, options: argparse.Namespace) -> str:
    """The resource group that is meant; one that is named and absent is made after a question or with --create."""
    subscription = _subscription(api, options)
    if options.resource_group:
        path = under(subscription, "resourceGroups", options.resource_group)
        if api.find(path) is None:
            _agree(api, options, f"{subscription}/resourceGroups", "resource group", path)
            api.put(path, {"location": options.location})
        return path
    return _only(api, f"{subscription}/resourceGroups", "resource group", "--resource-group")


def _below(api: Api, servers: list[str], collection: str) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(PARALLEL) as pool:
        lists = list(pool.map(lambda each: api.all(f"{each}/{collection}"), servers))
    return [each for one in lists for each in one]


def _subscription(api: Api, options: argparse.Namespace) -> str:
    if options.subscription:
        path = under("/subscriptions", options.subscription)
        if api.find(path) is None:
            _agree(api, options, "/subscriptions", "subscription", path)
            api.put(path, {})
        return path
    return _only(api, "/subscriptions", "subscription", "--subscription")


def _agree(api: Api, options: argparse.Namespace, parent: str, what: str, path: str) -> None:
    """A name that is misspelt makes nothing."""
    if options.create:
        return
    name = unquote(path.rsplit("/", 1)[-1])
    existing = [each["id"].rsplit("/", 1)[-1] for each in api.all(parent)]
    near = names.near(name, existing)
    if not inputs.can_ask():
        there = f"{near} It" if near else ": it"
        raise Refused(
            f"there is no {what} '{name}'{there} is created with --create", Exit.NOT_FOUND
        )
    others = near or (f"; there are: {', '.join(existing)}." if existing else ".")
    print(f"There is no {what} '{name}'{others}", file=sys.stderr)
    if not inputs.agrees(f"Create the {what} '{name}'?"):
        raise Refused("nothing was created")


def _only(api: Api, path: str, what: str, option: str) -> str:
    items = api.all(path)
    if not items:
        raise Refused(f"there is no {what} yet: {option} NAME --create creates one")
    if len(items) > 1:
        names = ", ".join(each["id"].rsplit("/", 1)[-1] for each in items)
        raise Refused(f"which {what}? Use {option}: {names}")
    return str(items[0]["id"])


def _same(name: str, wanted: str | None) -> bool:
    return wanted is None or name.lower() == wanted.lower()


def _short(id: str) -> str:
    words = id.split("/")
    return f"{words[-3]}/{words[-1]}"
