"""`muster operation …`: long-running operations, by their URL or id."""

import argparse
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from muster.cli import client, lookup, output
from muster.cli.arguments import Parser, duration, verb, verbs_of
from muster.cli.client import Api, Refused, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("operation", "status", "resource", "started", "ended", "error")
PLACE = f"{lookup.SQL}/locations/local"  # the API finds an operation by subscription and id
ENDED = {"Succeeded", "Failed", "Canceled"}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    example = "muster operation show 3f2a1c9e-1111-4111-8111-111111111111"
    _named(verb(verbs, "show", show, "show the status of an operation", example=example))
    about = "wait until an operation has ended, and exit with its result"
    example = "muster operation wait 3f2a1c9e-1111-4111-8111-111111111111 --timeout 10m"
    one = _named(verb(verbs, "wait", wait, about, example=example))
    one.add_argument("--timeout", type=duration, help="at most so long: 90, 15m, 2h")
    about = "show what an operation made"
    example = "muster operation result 3f2a1c9e-1111-4111-8111-111111111111"
    _named(verb(verbs, "result", result, about, example=example))


def _named(one: Parser) -> Parser:
    about = "id, or the URL of the header Azure-AsyncOperation or Location"
    one.add_argument("operation", metavar="OPERATION", help=about)
    one.add_argument("--subscription", metavar="NAME", help="of an id; default: all are searched")
    return one


def show(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.get(_path(api, options))))


def wait(options: argparse.Namespace) -> int:
    def waited(api: Api) -> int:
        path = _path(api, options)
        until = None if options.timeout is None else client.monotonic() + options.timeout
        pause = 0.1
        while (shown := api.get(path))["status"] not in ENDED:
            if until is not None and client.monotonic() >= until:
                _show(options, shown)
                return Exit.WAIT_TIMED_OUT
            client.sleep(pause)
            pause = min(pause * 1.5, 2.0)
        _show(options, shown)
        return Exit.SUCCEEDED if shown["status"] == "Succeeded" else Exit.USAGE

    return calling(options, waited)


def result(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        status = api.get(_path(api, options))
        if status["status"] not in ENDED:
            raise Refused("the operation has not ended: muster operation wait waits for it")
        path = _path(api, options, "serverOperationResults")
        item = api.get(path)
        row = [item.get("name"), item.get("type"), item.get("id")]
        output.show(options, item, Table(("name", "type", "id"), [row] if item else []))
        return Exit.SUCCEEDED

    return calling(options, shown)


def _path(api: Api, options: argparse.Namespace, kind: str = "serverAzureAsyncOperation") -> str:
    words = urlsplit(options.operation).path.strip("/").split("/")
    id = words[-1]
    try:
        UUID(id)
    except ValueError:
        raise Refused(f"'{options.operation}' is neither an operation's id nor its URL") from None
    if words[0].lower() == "subscriptions":
        return f"/subscriptions/{words[1]}/{PLACE}/{kind}/{id}"
    named = options.subscription
    parents = [lookup.subscription(api, named)] if named else lookup.subscriptions(api)
    for parent in parents:
        path = f"{parent}/{PLACE}"
        if api.find(f"{path}/serverAzureAsyncOperation/{id}") is not None:
            return f"{path}/{kind}/{id}"
    raise Refused(f"there is no operation '{id}'", Exit.NOT_FOUND)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    wrong = item.get("error")
    row = [
        item["name"],
        item["status"],
        item.get("resourceId"),
        moment(item.get("startTime")),
        moment(item.get("endTime")),
        f"{wrong['code']}: {wrong['message']}" if wrong else None,
    ]
    output.show(options, item, Table(COLUMNS, [row], optional=("error",)))
    return Exit.SUCCEEDED
