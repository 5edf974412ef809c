"""The results of all targets of a run as one table."""

import argparse
from typing import Any

from muster.cli import output
from muster.cli.client import Api
from muster.cli.output import Table
from muster.cli.runs import Run

PAGE = 1000
WHERE = {"serverName": "server", "databaseName": "database", "schemaName": "schema"}
NONE: dict[str, Any] = {"columns": list(WHERE), "rows": [], "targets": 0, "truncated": False}


def read(api: Api, run: Run, *, step: str | None = None, set: int = 1) -> dict[str, Any]:
    """All pages as one document; a column that some targets lack is null there."""
    columns: list[str] = []
    rows: list[dict[str, Any]] = []
    joined: dict[str, Any] = {}
    truncated = False
    for page in api.pages(f"{run.path}/results", {"step": step, "set": set, "$top": PAGE}):
        names = _told_apart(page["columns"])
        columns += [name for name in names if name not in columns]
        rows += [dict(zip(names, row, strict=True)) for row in page["rows"]]
        truncated = truncated or bool(page.get("truncated"))
        joined = page
    return {
        **{name: value for name, value in joined.items() if name != "nextLink"},
        "columns": columns,
        "rows": [[row.get(name) for name in columns] for row in rows],
        "truncated": truncated,
    }


def show(
    options: argparse.Namespace, found: dict[str, Any], document: dict[str, Any], *notes: str
) -> None:
    """`document` is what scripts get; people may ask for the first rows only."""
    columns = [WHERE.get(name, name) for name in found["columns"]]
    rows = found["rows"]
    if options.output == "table" and len(columns) <= len(WHERE):
        none = ["No target gave a table."] if found["targets"] else []
        print("\n".join([*none, *map(output.clean, notes)]))
        return
    told = []
    if options.output == "table" and options.head is not None and len(rows) > options.head:
        told = [f"… {len(rows) - options.head} more"]
        rows = rows[: options.head]
    told.append(f"{len(found['rows'])} rows from {found['targets']} targets.")
    if found["truncated"]:
        told.append("Some targets had more rows than are kept.")
    table = Table(columns, rows, optional=("database", "schema"))
    output.show(options, document, table, notes=[*told, *notes])


def _told_apart(names: list[str]) -> list[str]:
    """A query may give the same name to several columns."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return made
