"""`muster token …`: service tokens, with which programs use the API."""

import argparse
from shlex import quote
from typing import Any

from muster.cli import deletes, output, scopes, times
from muster.cli.arguments import Parser, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

TOKENS = "/providers/Microsoft.Authorization/serviceTokens"
COLUMNS = ("name", "principal", "scope", "expires", "description")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list the service tokens, never their secrets"
    verb(verbs, "list", list_tokens, about, example="muster token list")
    about = "show a service token, never its secret"
    _named(verb(verbs, "show", show, about, example="muster token show deploy"))
    about = "create a service token; its secret is shown this once"
    example = "muster token create deploy --expires 90d --account night"
    one = _named(verb(verbs, "create", create, about, example=example))
    about = "a duration from now such as 90d, or a time; default: never"
    one.add_argument("--expires", type=times.future, metavar="TIME", help=about)
    one.add_argument("--description", metavar="TEXT")
    scopes.add(one, "beyond which it reaches nothing, whatever its roles")
    about = "revoke a service token, at once and for ever"
    deletes.add(
        _named(verb(verbs, "delete", delete, about, example="muster token delete deploy --yes"))
    )


def _named(one: Parser) -> Parser:
    one.add_argument("name", metavar="NAME")
    return one


def list_tokens(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items = api.all(TOKENS)
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        item = api.get(under(TOKENS, options.name))
        output.show(options, item, Table(COLUMNS, [_row(item)]))
        return Exit.SUCCEEDED

    return calling(options, shown)


def create(options: argparse.Namespace) -> int:
    """People and scripts get the secret on stdout; what to do with it is said beside."""

    def put(api: Api) -> int:
        properties = {
            "expiresOn": options.expires,
            "description": options.description,
            "scope": scopes.given(api, options),
        }
        body = {"properties": {name: each for name, each in properties.items() if each is not None}}
        made = api.put(under(TOKENS, options.name), body)
        secret = made["properties"]["token"]
        columns, row = (*COLUMNS, "token"), [*_row(made), secret]
        output.show(options, made, Table(columns, [row], whole=("token",)))
        principal = made["properties"]["principalId"]
        scope = quote(made["properties"].get("scope") or "ID")
        output.aside(
            [
                "The token is not shown again.",
                f"It may do nothing yet: muster role assignment create --principal {principal}"
                f" --principal-type ServicePrincipal --role ROLE --scope {scope}",
            ]
        )
        return Exit.SUCCEEDED

    return calling(options, put)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        along = "what uses it is refused at once"
        deletes.agreed(options, f"the service token '{options.name}'", lambda: along)
        return deletes.done(api, options, under(TOKENS, options.name), options.name)

    return calling(options, gone)


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    return [
        item["name"],
        properties.get("principalId"),
        scopes.shown(properties.get("scope")),
        moment(properties.get("expiresOn")),
        properties.get("description"),
    ]
