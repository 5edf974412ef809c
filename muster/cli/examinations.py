"""`muster group doctor` and `muster credential test`: whether targets can be used, and the GRANTs to run if not."""

import argparse
from typing import Any

from muster.cli import lookup, output
from muster.cli.client import Api, calling, under
from muster.cli.exits import Exit
from muster.cli.output import Table

COLUMNS = ("server", "database", "schema", "credential", "user", "tls", "check", "code", "message")
OPTIONAL = ("schema", "credential", "check", "code", "message")


def doctor(options: argparse.Namespace) -> int:
    def ask(api: Api) -> int:
        path = under(lookup.account(api, options), "targetGroups", options.name, "doctor")
        return _show(options, _all(api, path, {}), "target")

    return calling(options, ask)


def test(options: argparse.Namespace) -> int:
    def ask(api: Api) -> int:
        path = under(lookup.account(api, options), "credentials", options.name, "test")
        body = {"servers": options.server, "databaseName": options.database}
        wanted = {name: value for name, value in body.items() if value}
        return _show(options, _all(api, path, wanted), "login")

    return calling(options, ask)


def _all(api: Api, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of all pages."""
    page = api.post(path, body)
    rows: list[dict[str, Any]] = page["value"]
    while (following := page.get("next")) is not None:
        page = api.post(path, {**body, "after": following})
        rows += page["value"]
    return rows


def _show(options: argparse.Namespace, rows: list[dict[str, Any]], what: str) -> int:
    """Problems first; what to run and what to do, once for all targets that it is about."""
    failed = [each for each in rows if not each["ok"]]
    first = sorted(rows, key=lambda each: bool(each["ok"]))
    table = Table(COLUMNS, [_row(each) for each in first], optional=OPTIONAL)
    notes = [f"{output.many(len(rows), what)}, {len(failed)} with a problem."]
    notes += _grants(failed)
    notes += dict.fromkeys(f"{each['code']}: {each['advice']}" for each in failed)
    output.show(options, {"value": rows}, table, notes=notes)
    if not failed:
        return Exit.SUCCEEDED
    return Exit.SOME_FAILED if len(failed) < len(rows) else Exit.ALL_FAILED


def _grants(failed: list[dict[str, Any]]) -> list[str]:
    """Each statement below the database to run it in, as a comment, so that the lines can be pasted."""
    by_place: dict[str, dict[str, None]] = {}
    for each in failed:
        place = "/".join((each["serverName"], each.get("databaseName", "")))
        by_place.setdefault(place, {}).update(dict.fromkeys(each.get("grants", ())))
    return [
        line for place, grants in by_place.items() if grants for line in (f"-- {place}", *grants)
    ]


def _row(each: dict[str, Any]) -> list[Any]:
    names = ("serverName", "databaseName", "schemaName", "credential", "username")
    tls = each.get("tls")
    shown = None if tls is None else tls.get("version") or "none"
    return [*map(each.get, names), shown, *map(each.get, ("check", "code", "message"))]
