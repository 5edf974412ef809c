"""`muster provider …`: which resource providers a subscription uses, and what can be granted on them."""

import argparse
from typing import Any

from muster.cli import lookup, output
from muster.cli.arguments import Parser, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("namespace", "state", "policy")
RIGHTS = ("right", "resource", "operation")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the resource providers"
    _of_subscription(verb(verbs, "list", list_providers, about, example="muster provider list"))
    about = "show whether a subscription uses a resource provider"
    _named(verb(verbs, "show", show, about, example="muster provider show Microsoft.Sql"))
    about = "let a subscription use a resource provider"
    _named(
        verb(verbs, "register", register, about, example="muster provider register Microsoft.Sql")
    )
    about = "end a subscription's use of a resource provider; refused while it has resources"
    example = "muster provider unregister Microsoft.Sql"
    _named(verb(verbs, "unregister", unregister, about, example=example))
    about = "list the rights that roles can allow on Microsoft.Sql"
    verb(verbs, "operations", operations, about, example="muster provider operations")


def _of_subscription(one: Parser) -> Parser:
    one.add_argument("--subscription", metavar="NAME", help="default: the only one there is")
    return one


def _named(one: Parser) -> Parser:
    _of_subscription(one).add_argument("name", metavar="NAMESPACE", help="such as Microsoft.Sql")
    return one


def list_providers(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(f"{lookup.subscription(api, options.subscription)}/providers")
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.get(_path(api, options))))


def register(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.post(f"{_path(api, options)}/register")))


def unregister(options: argparse.Namespace) -> int:
    return calling(
        options, lambda api: _show(options, api.post(f"{_path(api, options)}/unregister"))
    )


def operations(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all("/providers/Microsoft.Sql/operations")
        rows = [
            [each["name"], each["display"]["resource"], each["display"]["operation"]]
            for each in items
        ]
        output.show(options, {"value": items}, Table(RIGHTS, rows, whole=("right",)))
        return Exit.SUCCEEDED

    return calling(options, listed)


def _path(api: Api, options: argparse.Namespace) -> str:
    return under(lookup.subscription(api, options.subscription), "providers", options.name)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    return [item["namespace"], item["registrationState"], item.get("registrationPolicy")]
