"""The output of a step on the command line: the table that its rows are written to."""

import argparse
from typing import Any

from muster.cli.arguments import Parser, add_choice
from muster.cli.client import Refused

PLACE = ("server", "database", "table")


def add(parser: Parser) -> None:
    parser.add_argument(
        "--output-server", metavar="NAME", help="write the rows of the first result set there"
    )
    parser.add_argument("--output-database", metavar="NAME", help="with --output-server")
    parser.add_argument(
        "--output-table",
        metavar="NAME",
        help="with --output-server; created from the result if it does not exist",
    )
    parser.add_argument(
        "--output-schema", metavar="NAME", help="default: dbo if there is one, else public"
    )
    parser.add_argument(
        "--output-credential", metavar="NAME", help="default: that of the step, or of the group"
    )
    parser.add_argument(
        "--output-include-target",
        action="store_true",
        help="write target_server, target_database, target_schema and attempt too",
    )
    add_choice(
        parser,
        "--output-on-mismatch",
        choices=("fail", "addColumn"),
        help="if the table lacks a column of the result; default: fail",
    )


def read(options: argparse.Namespace, account: str) -> dict[str, Any] | None:
    """The output of a step; None when there is none."""
    credential = options.output_credential
    values = {
        "serverName": options.output_server,
        "databaseName": options.output_database,
        "tableName": options.output_table,
        "schemaName": options.output_schema,
        "credential": credential and f"{account}/credentials/{credential}",
        "includeTarget": options.output_include_target or None,
        "onMismatch": options.output_on_mismatch,
    }
    values = {name: value for name, value in values.items() if value is not None}
    missing = [f"--output-{name}" for name in PLACE if f"{name}Name" not in values]
    if values and missing:
        raise Refused(f"an output needs {', '.join(missing)} too")
    return values or None
