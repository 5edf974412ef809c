"""Targets that a start or a query names itself, in place of a target group: --target, --server, --database, --limit."""

import argparse
import json
from typing import Any

from muster.cli import output
from muster.cli.arguments import Parser, count
from muster.cli.client import Refused

FORM = "SERVER/DATABASE[/SCHEMA]"
NAMES = ("serverName", "databaseName", "schemaName")


def add(parser: Parser) -> None:
    parser.add_argument(
        "--target", action="append", default=[], metavar=FORM, help="repeatable; needs no group"
    )
    parser.add_argument(
        "--server",
        action="append",
        default=[],
        metavar="NAME",
        help="all of its databases; repeatable",
    )
    parser.add_argument(
        "--database",
        action="append",
        default=[],
        metavar="NAME",
        help="only these databases of each --server; * and ? as in a group; repeatable",
    )
    parser.add_argument("--limit", type=count, metavar="N", help="the first N targets of each step")


def add_of_start(parser: Parser) -> None:
    add(parser)
    parser.add_argument("--plan", metavar="PLAN", help="what `muster job plan` has stored")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=setting,
        metavar="OPTION=VALUE",
        help="for this run: timeoutSeconds, retryAttempts, maxParallelism, lockTimeoutSeconds, rollout (as JSON); "
        "repeatable",
    )


def of_start(options: argparse.Namespace) -> dict[str, Any] | None:
    """The body of a start; None where nothing is chosen."""
    overrides = dict(options.set)
    body = {**chosen(options), **({"overrides": overrides} if overrides else {})}
    if options.plan and body:
        raise Refused("--plan is started as it is, without targets, --limit and --set")
    return {"planId": options.plan} if options.plan else body or None


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """`targets` and `limit`, where they are given."""
    if options.database and not options.server:
        raise Refused(f"--database needs --server; or name both by --target {FORM}")
    targets = [_target(text) for text in options.target]
    targets += [
        {"serverName": server, **({"databaseName": database} if database else {})}
        for server in options.server
        for database in options.database or [None]
    ]
    body: dict[str, Any] = {"targets": targets} if targets else {}
    return body if options.limit is None else {**body, "limit": options.limit}


def counted(targets: list[dict[str, Any]]) -> dict[str, Any]:
    """The targets as `resolve` would show them; refuses those whose number only the servers know."""
    for each in targets:
        if {"*", "?"} & set(each.get("databaseName", "*")):
            place = output.clean("/".join(each[name] for name in NAMES if name in each))
            raise Refused(
                f"how many targets '{place}' means is not known beforehand: name each database, or use a group"
            )
    return {"count": len({tuple(each.values()) for each in targets}), "targets": targets}


def setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        form = 'such as retryAttempts=0 or rollout={"waves": [1]}'
        raise argparse.ArgumentTypeError(f"'{text}' is no OPTION=VALUE {form}") from None


def _target(text: str) -> dict[str, str]:
    parts = text.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise Refused(f"'{text}' is no target: expected {FORM}")
    return dict(zip(NAMES, parts, strict=False))
