"""`muster target …`: one database or schema, whichever jobs run there."""

import argparse
from itertools import islice
from typing import Any

from muster.cli import lookup, output
from muster.cli.arguments import Parser, count, of_account, verb, verbs_of
from muster.cli.client import Api, Refused, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("run", "job", "step", "schema", "lifecycle", "reason", "attempts", "start", "end")


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "show all that ever ran on a database, the newest first"
    one = of_account(
        verb(
            verbs, "history", history, about, example="muster target history eu1/tenant_7 --top 20"
        )
    )
    one.add_argument("target", metavar="TARGET", help="SERVER/DATABASE")
    one.add_argument("--schema", metavar="SCHEMA", help="only what ran on this schema of it")
    one.add_argument(
        "--top", type=count, default=20, metavar="N", help="at most N; 0: all; default: 20"
    )


def history(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        server, _, database = options.target.partition("/")
        if not (server and database):
            raise Refused(f"'{options.target}' is no target: expected SERVER/DATABASE")
        path = under(lookup.account(api, options), "targets", server, database)
        query = {"schema": options.schema, "$top": min(options.top, 1000) or None}
        found = (item for page in api.pages(path, query) for item in page["value"])
        items = list(islice(found, options.top or None))
        table = Table(COLUMNS, [_row(each) for each in items], optional=("schema", "reason"))
        nothing = [f"Nothing has run on {options.target}."] if not items else []
        output.show(options, {"value": items}, table, notes=nothing)
        return Exit.SUCCEEDED

    return calling(options, show)


def _row(item: dict[str, Any]) -> list[Any]:
    properties = item["properties"]
    return [
        properties["jobExecutionId"],
        item["id"].split("/")[-7],
        properties["stepName"],
        properties["target"].get("schemaName"),
        properties["lifecycle"],
        properties.get("endReason") or properties.get("waitReason"),
        properties.get("currentAttempts"),
        moment(properties.get("startTime")),
        moment(properties.get("endTime")),
    ]
