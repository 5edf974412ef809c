"""`muster account update`, `delete`, `history` and `activity`: what changes an account, and what changed."""

import argparse
from collections.abc import Callable
from typing import Any

from muster.cli import auto_disable, deletes, histories, lookup, output, run_attempts, updates
from muster.cli.arguments import Commands, Parser, add_choice, count, may_wait, verb
from muster.cli.client import Api, Refused, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment
from muster.cli.updates import TAGS, setting

COLUMNS = ("server", "name", "state", "paused", "capacity", "engine", "last_heartbeat")
ACTIVITY = ("time", "action", "caller", "login", "door", "what")
DOORS = ("rest", "fsm", "psql")
CREATED = (
    setting(
        "--capacity",
        "sku",
        reset=False,
        read=lambda number: {"name": "MUSTER", "capacity": number},
        type=count,
        metavar="N",
        help="targets that run at once; default of a new account: 100",
    ),
    setting(
        "--default-credential",
        "properties.defaultCredential",
        metavar="CREDENTIAL",
        help="for targets where step, target group and server name none",
    ),
    setting(
        "--halt-after-same-errors",
        "properties.haltAfterConsecutiveSameError",
        type=count,
        metavar="N",
        help="halt a run when so many targets in a row fail with the same error; default: 50; 0: never",
    ),
    *run_attempts.settings("jobs without such an option"),
    auto_disable.of("off; for jobs that do not say it themselves"),
)
SETTINGS = (*CREATED, TAGS)


def add_settings(create: Parser) -> None:
    updates.add_settings(create, CREATED)


def add(verbs: Commands, of_name: Callable[[Parser], Parser]) -> None:
    about = "change what is named of an account"
    example = "muster account update night --capacity 400 --reset default-credential"
    one = of_name(verb(verbs, "update", update, about, example=example))
    updates.add(may_wait(one), SETTINGS)
    about = "delete an account; its control database stays, with or without its definitions"
    example = "muster account delete night --yes"
    one = of_name(verb(verbs, "delete", delete, about, example=example))
    about = "also drop the schema jobs: all definitions and the whole history"
    one.add_argument("--drop-schema", action="store_true", help=about)
    deletes.add(may_wait(one))
    about = "list the state changes of an account"
    example = "muster account history night --top 10"
    histories.add(of_name(verb(verbs, "history", history, about, example=example)))
    about = (
        "list changes inside an account, through REST, by Muster and through psql; the newest first"
    )
    example = "muster account activity night --door psql"
    one = of_name(verb(verbs, "activity", activity, about, example=example))
    add_choice(one, "--door", choices=DOORS, help="only these")
    one.add_argument("--top", type=count, default=50, metavar="N", help="default: 50; 0: all")


def update(options: argparse.Namespace) -> int:
    def patch(api: Api) -> int:
        changes = updates.changes(options, SETTINGS)
        return show(options, updates.patched(api, lookup.account(api, options), changes))

    return calling(options, patch)


def delete(options: argparse.Namespace) -> int:
    def gone(api: Api) -> int:
        path = lookup.account(api, options)
        name = path.rpartition("/")[2]
        deletes.agreed(options, f"the account '{name}'", lambda: _inside(api, options, path))
        query = {"dropSchema": "true" if options.drop_schema else None}
        return deletes.done(api, options, path, name, query)

    return calling(options, gone)


def _inside(api: Api, options: argparse.Namespace, path: str) -> str:
    kinds = {"job": "jobs", "target group": "targetGroups", "credential": "credentials"}
    try:
        inside = deletes.counted(api, {what: [f"{path}/{kind}"] for what, kind in kinds.items()})
    except Refused:  # an account whose control database is away can be deleted all the same
        inside = ""
    what = inside or "its definitions"
    if options.drop_schema:
        return f"{what} and the whole history are dropped"
    return f"{what} and the history stay in its control database"


def history(options: argparse.Namespace) -> int:
    return histories.show(options, lookup.account)


def activity(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        items: list[dict[str, Any]] = []
        query = {"door": options.door, "$top": options.top or None}
        for page in api.pages(f"{lookup.account(api, options)}/activityLog", query):
            items += page["value"]
            if options.top and len(items) >= options.top:
                break
        items = items[: options.top or None]
        rows = [
            [
                moment(each["time"]),
                *(each[name] for name in ("action", "caller", "login", "door")),
                _what(each.get("detail") or {}),
            ]
            for each in items
        ]
        output.show(options, {"value": items}, Table(ACTIVITY, rows))
        return Exit.SUCCEEDED

    return calling(options, listed)


def show(options: argparse.Namespace, account: dict[str, Any]) -> int:
    table = Table(COLUMNS, [row(account)])
    output.show(options, account, table, notes=output.conditions(account))
    return Exit.SUCCEEDED


def row(account: dict[str, Any]) -> list[Any]:
    properties = account.get("properties") or {}  # nothing of one that only lies above
    engine = properties.get("instance") or {}
    return [
        account["id"].split("/")[-3],
        account["name"],
        properties.get("state"),
        properties.get("paused", False),
        (account.get("sku") or {}).get("capacity"),
        engine.get("version"),
        moment(engine.get("lastHeartbeat")),
    ]


def _what(detail: dict[str, Any]) -> str | None:
    """The names in a change, without the documents that were written."""
    names = {key: value for key, value in detail.items() if isinstance(value, str | int)}
    return output.pairs({key: str(value) for key, value in names.items()})
