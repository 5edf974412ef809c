"""`muster credential …`: the logins that jobs use at targets; secrets are never arguments."""

import argparse
from pathlib import Path
from typing import Any
from uuid import UUID

from muster.cli import deletes, examinations, inputs, lookup, output, updates
from muster.cli.arguments import Parser, of_account, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table
from muster.cli.updates import setting

COLUMNS = ("name", "username", "reference", "servers")
ANY_SERVER = "*"
SETTINGS = (
    setting("--username", "properties.username", reset=False, metavar="USER"),
    setting(
        "--reference",
        "properties.reference",
        reset=False,
        metavar="REF",
        help="env:NAME, file:/path or vault:mount/path#key, in the place of a password",
    ),
    setting(
        "--server",
        "properties.servers",
        action="append",
        metavar="SERVER",
        help="the only server it is for; may be given several times, '*' is any server",
    ),
)


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "create or change a credential; the password comes from the terminal, stdin or a file"
    one = of_account(
        verb(
            verbs,
            "set",
            set_credential,
            about,
            example="muster credential set fleet-login --username job_runner --server eu1",
        )
    )
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
    about = "change what is named of a credential"
    example = "muster credential update fleet-login --username job_runner_2"
    one = of_account(verb(verbs, "update", update, about, example=example))
    one.add_argument("name", metavar="NAME")
    updates.add(one, SETTINGS)
    one.add_argument("--password-file", type=Path, metavar="FILE", help="- is stdin")
    about = "ask for another password, or read it from stdin"
    one.add_argument("--new-password", action="store_true", help=about)
    of_account(
        verb(
            verbs,
            "list",
            list_credentials,
            "list the credentials of an account",
            example="muster credential list",
        )
    )
    about = "show a credential, never its password"
    example = "muster credential show fleet-login"
    one = of_account(verb(verbs, "show", show, about, example=example))
    one.add_argument("name", metavar="NAME")
    about = "delete a credential that no job or target group names"
    example = "muster credential delete fleet-login --yes"
    one = of_account(verb(verbs, "delete", delete, about, example=example))
    one.add_argument("name", metavar="NAME")
    deletes.add(one)
    about = "try the login of a credential at servers of the account"
    one = of_account(
        verb(
            verbs,
            "test",
            examinations.test,
            about,
            example="muster credential test fleet-login --server eu1",
        )
    )
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
    one = of_account(
        verb(
            verbs,
            "seal",
            seal,
            about,
            example="muster credential seal fleet-login --password-file password.txt",
        )
    )
    one.add_argument("name", metavar="NAME", help="of the credential that it is for")
    one.add_argument("--password-file", type=Path, metavar="FILE", help="- is stdin")


def set_credential(options: argparse.Namespace) -> int:
    def put(api: Api) -> int:
        path = _path(api, options)
        properties: dict[str, Any] = {"username": options.username}
        if options.server:
            properties["servers"] = options.server
        if options.reference:
            properties["reference"] = options.reference
        else:
            properties["password"] = inputs.password(options.password_file).reveal()
        return _show(options, api.put(path, {"properties": properties}))

    return calling(options, put)


def update(options: argparse.Namespace) -> int:
    """What is not said is not sent: without a secret or servers those that there are stay."""

    def put(api: Api) -> int:
        changes = updates.changes(options, SETTINGS, _secret(options), ["--new-password"])
        properties = changes["properties"]
        if "servers" in properties and properties["servers"] is None:
            properties["servers"] = [ANY_SERVER]
        path = _path(api, options)
        old = api.latest(path)["properties"]
        body = {"properties": {"username": old["username"], **properties}}
        return _show(options, api.put(path, body, etag=api.seen_etag(path)))

    return calling(options, put)


def show(options: argparse.Namespace) -> int:
    def shown(api: Api) -> int:
        return _show(options, api.get(_path(api, options)))

    return calling(options, shown)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        deletes.agreed(options, f"the credential '{options.name}'")
        return deletes.done(api, options, _path(api, options), options.name)

    return calling(options, gone)


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


def _path(api: Api, options: argparse.Namespace) -> str:
    return under(lookup.account(api, options), "credentials", options.name)


def _secret(options: argparse.Namespace) -> updates.Document:
    if not (options.password_file or options.new_password):
        return {}
    if options.reference:
        raise Refused("give either a password or --reference")
    return {"properties": {"password": inputs.password(options.password_file).reveal()}}


def _show(options: argparse.Namespace, item: dict[str, Any]) -> int:
    output.show(options, item, Table(COLUMNS, [_row(item)]))
    return Exit.SUCCEEDED


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    lapsed = [f"{each.rpartition('/')[2]} (lapsed)" for each in properties.get("lapsedServers", ())]
    servers = ", ".join([*properties.get("servers", ()), *lapsed])
    return [item["name"], properties.get("username"), properties.get("reference"), servers or None]
