"""`muster audit …`: what was done and by whom."""

import argparse
from pathlib import Path
from typing import Any

from muster.cli import lookup, output, times
from muster.cli.arguments import Parser, command, count, epilog, verb, verbs_of
from muster.cli.client import Api, Refused, calling
from muster.cli.exits import Exit
from muster.cli.output import Table, moment

EVENTS = "providers/Microsoft.Insights/eventtypes/management/values"
COLUMNS = ("time", "caller", "operation", "status", "resource", "correlation")
FILTERS = {  # option → field of $filter, how it compares
    "since": ("eventTimestamp", "ge"),
    "until": ("eventTimestamp", "le"),
    "caller": ("caller", "eq"),
    "status": ("status", "eq"),
    "operation": ("operationName", "eq"),
    "resource_group": ("resourceGroupName", "eq"),
    "resource": ("resourceUri", "eq"),
    "correlation": ("correlationId", "eq"),
    "provider": ("resourceProvider", "eq"),
}


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    about = "list what was done through the API and what was denied, the newest first"
    one = verb(
        verbs, "list", list_events, about, example="muster audit list --status Denied --since 1d"
    )
    one.add_argument("--since", type=times.past, metavar="TIME", help="2h ago as 2h, or a time")
    one.add_argument("--until", type=times.past, metavar="TIME", help="likewise")
    one.add_argument("--caller", metavar="NAME", help="as the list shows it")
    one.add_argument(
        "--status", metavar="STATUS", help="such as Accepted, Succeeded, Failed, Denied"
    )
    one.add_argument("--operation", metavar="RIGHT", help="such as Microsoft.Sql/servers/write")
    one.add_argument("--provider", metavar="NAMESPACE", help="such as Microsoft.Sql")
    one.add_argument("--resource", metavar="ID", help="what it was done to")
    one.add_argument("--resource-group", metavar="GROUP", help="of --subscription")
    one.add_argument("--correlation", metavar="ID", help="of one request and what it caused")
    one.add_argument("--subscription", metavar="NAME", help="default: the whole installation")
    one.add_argument("--top", type=count, default=50, metavar="N", help="default: 50; 0: all")
    made = command(verbs, "verify", "find events that were changed, removed or added")
    made.epilog = epilog("muster audit verify --heads heads.txt")
    made.add_argument("--data-dir", type=Path, help="of a `muster up` (default: by XDG)")
    made.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="what an earlier verify printed: these entries must still have their hashes",
    )
    made.set_defaults(run=verify)


def list_events(options: argparse.Namespace) -> int:
    def listed(api: Api) -> int:
        scope = lookup.subscription(api, options.subscription) if _below(options) else ""
        query = {"$filter": _filter(options), "$top": options.top or None}
        items: list[dict[str, Any]] = []
        for page in api.pages(f"{scope}/{EVENTS}", query):
            items += page["value"]
            if options.top and len(items) >= options.top:
                break
        items = items[: options.top or None]
        output.show(options, {"value": items}, Table(COLUMNS, [_row(each) for each in items]))
        return Exit.SUCCEEDED

    return calling(options, listed)


def verify(options: argparse.Namespace) -> int:
    from muster.cli import config
    from muster.roles import audit

    settings = config.load(options.data_dir)
    return Exit.USAGE if settings is None else audit.main(settings, options.heads)


def _below(options: argparse.Namespace) -> bool:
    return bool(options.subscription or options.resource_group)


def _filter(options: argparse.Namespace) -> str | None:
    clauses = []
    for option, (field, compares) in FILTERS.items():
        value = getattr(options, option)
        if value is None:
            continue
        if "'" in value:
            raise Refused(f"--{option.replace('_', '-')}: the API takes no apostrophe there")
        clauses.append(f"{field} {compares} '{value}'")
    return " and ".join(clauses) or None


def _row(event: dict[str, Any]) -> list[Any]:
    return [
        moment(event["eventTimestamp"]),
        event["caller"],
        event["operationName"]["value"],
        event["status"]["value"],
        event["resourceId"],
        event.get("correlationId"),
    ]
