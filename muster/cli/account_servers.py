"""`muster account servers`, `allow-server`, `disallow-server`: which servers an account may use as targets."""

import argparse

from muster.cli import lookup, output
from muster.cli.arguments import Commands, of_account, verb
from muster.cli.client import Api, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("server", "added_by", "added_at")


def add(verbs: Commands) -> None:
    about = "list the servers that an account may use as targets"
    of_account(
        verb(
            verbs, "servers", list_servers, about, example="muster account servers --account night"
        )
    )
    about = "let the jobs of an account use a server as target; in SQL they name only such servers"
    one = of_account(
        verb(
            verbs,
            "allow-server",
            allow,
            about,
            example="muster account allow-server eu2 --account night",
        )
    )
    one.add_argument("server", metavar="SERVER")
    one = of_account(
        verb(
            verbs,
            "disallow-server",
            disallow,
            "remove a server from the targets of an account",
            example="muster account disallow-server eu2 --account night",
        )
    )
    one.add_argument("server", metavar="SERVER")
    about = "also while target groups or steps name it or executions run there"
    one.add_argument("--force", action="store_true", help=about)


def list_servers(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        servers = api.all(f"{lookup.account(api, options)}/allowedServers")
        rows = [[each["name"], each["addedBy"], moment(each["addedAt"])] for each in servers]
        output.show(options, {"value": servers}, Table(COLUMNS, rows))
        return Exit.SUCCEEDED

    return calling(options, show)


def allow(options: argparse.Namespace) -> int:
    return _change(options, "allowServer", {"server": options.server})


def disallow(options: argparse.Namespace) -> int:
    body: dict[str, str | bool] = {"server": options.server}
    if options.force:
        body["force"] = True
    return _change(options, "disallowServer", body)


def _change(options: argparse.Namespace, action: str, body: dict[str, str | bool]) -> int:
    def post(api: Api) -> int:
        id = lookup.account(api, options)
        answer = api.post(f"{id}/{action}", body)
        row = [id.rsplit("/", 1)[-1], answer["server"], answer["allowed"], answer["changed"]]
        output.show(options, answer, Table(("account", "server", "allowed", "changed"), [row]))
        return Exit.SUCCEEDED

    return calling(options, post)
