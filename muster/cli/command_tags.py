"""What statements changed: command tags such as UPDATE 3, by target and in total."""

from collections.abc import Iterator
from typing import Any

from muster.cli.client import Api, Refused
from muster.cli.exits import Exit
from muster.cli.output import many
from muster.cli.runs import Run

COLUMNS = ("target_server", "target_database", "target_schema", "statement", "tag", "rows")
FOR_PEOPLE = ("server", "database", "schema", "statement", "tag", "rows")
PAGE = 1000
# Their tags say nothing about changes.
NO_CHANGES = ("SELECT", "SHOW", "EXPLAIN", "FETCH", "SET", "RESET")


def read(api: Api, run: Run, step: str | None = None) -> list[list[Any]]:
    """A row for each statement that changed something, at each target that succeeded."""
    try:
        targets = api.all(f"{run.path}/commandTags", {"step": step, "$top": PAGE})
    except Refused as refused:
        if refused.code is not Exit.NOT_FOUND:
            raise
        return []  # an older API does not know them
    return [row for target in targets for row in _rows(target)]


def totals(rows: list[list[Any]]) -> list[str]:
    """One line for each kind of statement, in the order of the script."""
    sums: dict[str, int | None] = {}
    where: dict[str, set[tuple[Any, ...]]] = {}
    for *target, _, tag, number in rows:
        kind = _kind(tag)
        sums[kind] = None if number is None else (sums.get(kind) or 0) + number
        where.setdefault(kind, set()).add(tuple(target))
    return [
        f"{kind}{'' if number is None else f' {number}'} on {many(len(where[kind]), 'target')}."
        for kind, number in sums.items()
    ]


def _rows(target: dict[str, Any]) -> Iterator[list[Any]]:
    names = [target.get(name) for name in ("serverName", "databaseName", "schemaName")]
    for each in target["commandTags"]:
        if _kind(each["tag"]) not in NO_CHANGES:
            yield [*names, each["statement"], each["tag"], each.get("rows")]


def _kind(tag: str) -> str:
    """The tag without its numbers: INSERT 0 3 is an INSERT."""
    return " ".join(word for word in tag.split() if not word.isdecimal())
