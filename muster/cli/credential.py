"""`muster credential …`: the logins that jobs use at targets; secrets are never arguments."""

import argparse
from pathlib import Path
from typing import Any
from uuid import UUID

from muster.cli import inputs, lookup, output
from muster.cli.arguments import Commands, noun, of_account, verb
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("name", "username", "reference", "servers")


def add(commands: Commands) -> None:
    verbs = noun(commands, "credential", "manage the logins that jobs use at targets")
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
    about = "seal a password for jobs.sp_add_credential; read from the terminal, stdin or a file"
    one = of_account(verb(verbs, "seal", seal, about))
    one.add_argument("name", metavar="NAME", help="of the credential that it is for")
    one.add_argument("--password-file", type=Path, metavar="FILE", help="- is stdin")


def set_credential(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        path = under(lookup.account(api, options), "credentials", options.name)
        said: dict[str, Any] = {"username": options.username}
        if options.server:
            said["servers"] = options.server
        if options.reference:
            said["reference"] = options.reference
        else:
            said["password"] = inputs.password(options.password_file).reveal()
        made = api.put(path, {"properties": said})
        output.show(options, made, Table(COLUMNS, [_row(made)]))
        return Exit.SUCCEEDED

    return calling(options, put)


def list_credentials(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        found = api.all(f"{lookup.account(api, options)}/credentials")
        output.show(options, {"value": found}, Table(COLUMNS, [_row(each) for each in found]))
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
        if options.output == "table":
            print(sealed)
        else:
            output.show(options, {"sealed": sealed}, Table(("sealed",), [[sealed]]))
        return Exit.SUCCEEDED

    return calling(options, sealing)


def _row(item: dict[str, Any]) -> list[Any]:
    said = item["properties"]
    lapsed = [f"{each.rpartition('/')[2]} (lapsed)" for each in said.get("lapsedServers", ())]
    servers = ", ".join([*said.get("servers", ()), *lapsed])
    return [item["name"], said.get("username"), said.get("reference"), servers or None]
