"""The results of all targets of a run as one table."""

import argparse
from collections.abc import Iterable
from typing import Any

from muster.cli import command_tags, output, result_files
from muster.cli.client import Api
from muster.cli.output import Table
from muster.cli.runs import Run

PAGE = 1000
CUT = "Some targets returned more rows than are kept."
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


def first(api: Api, run: Run, *, step: str | None = None, set: int = 1) -> dict[str, Any]:
    """Enough to know the columns: the rows follow as a stream."""
    return api.get(f"{run.path}/results", {"step": step, "set": set, "$top": 1})


def further(api: Api, run: Run, page: dict[str, Any]) -> list[str]:
    """A note when the script gave more result sets than this one."""
    following = int(page.get("set", 1)) + 1
    if not (is_table(page) and _is_there(api, run, page.get("stepName"), following)):
        return []
    return [f"There are further result sets: muster run results {run.id} --set {following}"]


def last_before(api: Api, run: Run, step: str | None, set: int) -> int:
    """The number of the last result set, where the one that was asked for is not there; 0: none is."""
    return next((n for n in range(set - 1) if not _is_there(api, run, step, n + 1)), set - 1)


def is_table(page: dict[str, Any]) -> bool:
    return len(page["columns"]) > len(WHERE)


def show(
    api: Api,
    run: Run,
    options: argparse.Namespace,
    page: dict[str, Any],
    changes: list[list[Any]],
    *,
    notes: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> None:
    """Rows; where no target returned any, `changes`: what each statement changed.

    `notes` are for people; `warnings` for everybody, beside the data where a script reads it.
    """
    if output.is_for_people(options):
        _show_people(options, page, changes, [*notes, *_cut(page), *warnings])
        return
    file = result_files.is_file(options)
    if file and is_table(page):
        query = {"step": page.get("stepName"), "set": page.get("set", 1)}
        page |= {"truncated": result_files.copy(api, f"{run.path}/results", query, options.output)}
    elif file:
        columns = command_tags.COLUMNS if changes else command_tags.COLUMNS[: len(WHERE)]
        result_files.write(options.output, columns, changes)
    elif is_table(page) or not changes:
        objects = [dict(zip(_in_files(page["columns"]), row, strict=True)) for row in page["rows"]]
        columns = tuple(WHERE.get(name, name) for name in page["columns"])
        output.show(options, objects, Table(columns, page["rows"]))
    else:
        objects = [dict(zip(command_tags.COLUMNS, row, strict=True)) for row in changes]
        output.show(options, objects, Table(command_tags.FOR_PEOPLE, changes))
    output.aside([*_cut(page), *warnings])


def _show_people(
    options: argparse.Namespace, page: dict[str, Any], changes: list[list[Any]], notes: list[str]
) -> None:
    totals = command_tags.totals(changes)
    if is_table(page):
        columns, rows = [WHERE.get(name, name) for name in page["columns"]], page["rows"]
        number = output.many(len(rows), "row")
        totals = [f"{number} from {output.many(page['targets'], 'target')}.", *totals]
    else:
        columns, rows = list(command_tags.FOR_PEOPLE), changes
    if not (rows or is_table(page)):
        none = ["No target returned rows."] if page["targets"] else []
        for line in (*none, *notes):
            print(output.clean(line))
        return
    more = []
    if options.head is not None and len(rows) > options.head:
        more = [f"… {len(rows) - options.head} more"]
        rows = rows[: options.head]
    table = Table(columns, rows, optional=("database", "schema"))
    output.show(options, page, table, notes=[*more, *totals, *notes])


def _cut(page: dict[str, Any]) -> list[str]:
    return [CUT] if page["truncated"] else []


def _in_files(columns: list[str]) -> list[str]:
    """As the API names them in files."""
    return [f"target_{WHERE[name]}" if name in WHERE else name for name in columns]


def _is_there(api: Api, run: Run, step: str | None, set: int) -> bool:
    return is_table(first(api, run, step=step, set=set))


def _told_apart(names: list[str]) -> list[str]:
    """A query may give the same name to several columns."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return made
