"""`muster credential …`: the logins that jobs use at targets; secrets are never arguments."""

import argparse
from pathlib import Path
from typing import Any
from uuid import UUID

from muster.cli import examinations, inputs, lookup, output
from muster.cli.arguments import Parser, of_account, verb, verbs_of
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("name", "username", "reference", "servers")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "create or change a credential; the password comes from the terminal, stdin or a file"
    one = of_account(verb(verbs, "set", set_credential, about))
    one.add_argument("name", metavar="NAME")
    one.add_argument("--username", required=True, metavar="USER")
    source = one.add_mutually_exclusive_group()
    source.add_argument("--password-file", type=Path, metavar="FILE", help="- is stdin")
    source.add_argument(
        "--reference", metavar="REF", help="env:NAME, file:/path or vault:mount/path#key"
    )
    one.add_argument(
        "--server",
        action="append",
        metavar="SERVER",
        help="the only server it is for; may be given several times, '*' is any server",
    )
    of_account(verb(verbs, "list", list_credentials, "list the credentials of an account"))
    about = "try the login of a credential at servers of the account"
    one = of_account(verb(verbs, "test", examinations.test, about))
    one.add_argument("name", metavar="NAME")
    one.add_argument(
        "--server",
        action="append",
        metavar="SERVER",
        help="only there; may be given several times; default: all servers of the account",
    )
    one.add_argument(
        "--database", metavar="DATABASE", help="default: the maintenance database of each server"
    )
    about = "seal a password for jobs.sp_add_credential; read from the terminal, stdin or a file"
    one = of_account(verb(verbs, "seal", seal, about))
    one.add_argument("name", metavar="NAME", help="of the credential that it is for")
    one.add_argument("--password-file", type=Path, metavar="FILE", help="- is stdin")


def set_credential(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        path = under(lookup.account(api, options), "credentials", options.name)
        properties: dict[str, Any] = {"username": options.username}
        if options.server:
            properties["servers"] = options.server
        if options.reference:
            properties["reference"] = options.reference
        else:
            properties["password"] = inputs.password(options.password_file).reveal()
        made = api.put(path, {"properties": properties})
        output.show(options, made, Table(COLUMNS, [_row(made)]))
        return Exit.SUCCEEDED

    return calling(options, put)


def list_credentials(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        credentials = api.all(f"{lookup.account(api, options)}/credentials")
        output.show(
            options, {"value": credentials}, Table(COLUMNS, [_row(each) for each in credentials])
        )
        return Exit.SUCCEEDED

    return calling(options, show)


def seal(options: argparse.Namespace) -> int:
    """Here and not by the API: what is typed leaves this machine sealed."""

    def sealing(api: Api) -> int:
        from muster.core import sealing

        key = api.post(f"{lookup.account(api, options)}/sealingKey")
        context = sealing.belongs_to(UUID(key["accountUid"]), UUID(key["identity"]), options.name)
        secret = inputs.password(options.password_file)
        sealed = sealing.seal(key["publicKey"], secret, context)
        if output.is_for_people(options):
            print(sealed)
        else:
            output.show(options, {"sealed": sealed}, Table(("sealed",), [[sealed]]))
        return Exit.SUCCEEDED

    return calling(options, sealing)


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    lapsed = [f"{each.rpartition('/')[2]} (lapsed)" for each in properties.get("lapsedServers", ())]
    servers = ", ".join([*properties.get("servers", ()), *lapsed])
    return [item["name"], properties.get("username"), properties.get("reference"), servers or None]
