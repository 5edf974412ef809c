"""`muster run events` and `muster account events`: what happened, as it happens."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from muster.cli import client, documents, lookup, output, runs
from muster.cli.arguments import Parser, count
from muster.cli.client import PATIENCE, Api, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

COLUMNS = ("number", "time", "kind", "job", "text")
PAUSE = 1.0  # seconds before the next connection


def add_options(one: Parser) -> None:
    one.add_argument("--follow", action="store_true", help="go on with new events")
    one.add_argument(
        "--after", type=count, metavar="NUMBER", help="only events after this one; default: all"
    )


def of_run(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        run = runs.find(api, lookup.account(api, options), options.name)
        return _show(api, options, f"{run.path}/events")

    return calling(options, show)


def of_account(options: argparse.Namespace) -> int:
    def show(api: Api) -> int:
        if options.after is None and not options.follow:
            options.after = 0
        return _show(api, options, f"{lookup.account(api, options)}/events")

    return calling(options, show)


def _show(api: Api, options: argparse.Namespace, path: str) -> int:
    if options.output in {"tsv", "csv"} and not options.query:
        documents.write(options, None, Table(COLUMNS, []))
    for event in follow(api, path, options.after, until_now=not options.follow):
        _print(options, event)
    return Exit.SUCCEEDED


def follow(api: Api, path: str, after: int | None, *, until_now: bool) -> Iterator[dict[str, Any]]:
    """Connects again after the last event when the connection is lost."""
    import httpx

    position = None if after is None else str(after)
    lost_at: float | None = None
    while True:
        query = {"after": position, "follow": "false" if until_now else None}
        try:
            for id, kind, data in _messages(api.lines(path, query)):
                lost_at = None
                position = id or position
                if kind == "end":
                    return
                if kind == "gap":
                    output.aside(["Earlier events were deleted."])
                elif kind:
                    yield json.loads(data)
        except httpx.TransportError:
            lost_at = lost_at or client.monotonic()
            if client.monotonic() - lost_at > PATIENCE:
                raise
        else:
            if until_now:
                return
        client.sleep(PAUSE)


def _messages(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Id, kind and data of each message; the last one may be cut off and is left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield fields.get("id", ""), fields.get("event", ""), fields.get("data", "")
            fields = {}


def _print(options: argparse.Namespace, event: dict[str, Any]) -> None:
    data = event["data"]
    row = [event["number"], event["time"], event["kind"], data.get("jobName")]
    row.append(_text(event["kind"], data))
    if output.is_for_people(options):
        row[1] = moment(event["time"])
        cells = [output.clean(output.text(cell)) for cell in row]
        print(f"{cells[0]:>6}  {cells[1]}  {cells[2]:<18} {cells[4]}".rstrip(), flush=True)
    else:
        documents.write_one(options, event, row)


def _text(kind: str, data: dict[str, Any]) -> str:
    """The details in one line."""
    if kind == "targetsEnded":
        counts = ", ".join(f"{number} {name}" for name, number in data["counts"].items())
        failures = [
            f"{'/'.join(filter(None, (each.get('serverName'), each.get('databaseName'), each.get('schemaName'))))}:"
            f" {each.get('message') or each.get('endReason')}"
            for each in data.get("failures", ())
        ]
        return "; ".join([f"step {data['stepId']}: {counts}", *failures])
    if kind == "targetsRetried":
        return f"step {data['stepId']}: {data['number']}"
    if kind == "waveStarted":
        return f"{data['stepName']}: wave {data['wave']} of {data['waves']}"
    parts = [data.get("stepName"), data.get("lifecycle"), data.get("lastMessage")]
    if kind in {"slotLate", "slotMissed"}:
        parts = [f"{data['count']} slots from {data['firstSlot']} to {data['lastSlot']}"]
    elif "failuresInARow" in data:
        parts.append(f"({data['failuresInARow']} failures in a row)")
    return " ".join(part for part in parts if part)
