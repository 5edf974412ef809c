"""`muster private-endpoint …`: connections of an account to servers that need an approval."""

import argparse
from typing import Any

from muster.cli import deletes, lookup, output
from muster.cli.arguments import Parser, of_account, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

TARGET = "targetServerAzureResourceId"
COLUMNS = ("name", "server", "status", "endpoint")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the private endpoints of an account"
    of_account(verb(verbs, "list", list_endpoints, about, example="muster private-endpoint list"))
    about = "show a private endpoint"
    _named(verb(verbs, "show", show, about, example="muster private-endpoint show to-eu1"))
    about = "ask for a connection to a server; it waits for an approval"
    example = "muster private-endpoint create to-eu1 --server eu1"
    one = _named(verb(verbs, "create", create, about, example=example))
    one.add_argument("--server", required=True, metavar="SERVER")
    about = "approve a connection; needs the right to use the server as a target"
    example = "muster private-endpoint approve to-eu1"
    _named(verb(verbs, "approve", approve, about, example=example))
    about = "reject a connection: the account does not reach the server"
    _named(verb(verbs, "reject", reject, about, example="muster private-endpoint reject to-eu1"))
    about = "delete a private endpoint"
    example = "muster private-endpoint delete to-eu1 --yes"
    deletes.add(_named(verb(verbs, "delete", delete, about, example=example)))


def _named(one: Parser) -> Parser:
    of_account(one).add_argument("name", metavar="NAME")
    return one


def list_endpoints(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(f"{lookup.account(api, options)}/privateEndpoints")
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.get(_path(api, options))))


def create(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        body = {"properties": {TARGET: lookup.server(api, options.server)}}
        return _show(options, api.put(_path(api, options), body, new=True))

    return calling(options, put)


def approve(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.post(f"{_path(api, options)}/approve")))


def reject(options: argparse.Namespace) -> int:
    return calling(options, lambda api: _show(options, api.post(f"{_path(api, options)}/reject")))


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        deletes.agreed(options, f"the private endpoint '{options.name}'")
        return deletes.done(api, options, _path(api, options), options.name)

    return calling(options, gone)


def _path(api: Api, options: argparse.Namespace) -> str:
    return under(lookup.account(api, options), "privateEndpoints", options.name)


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    server = properties[TARGET].rpartition("/")[2]
    return [item["name"], server, properties.get("status"), properties.get("privateEndpointId")]
