"""What targets said beside their results: each line with the target that said it."""

from collections.abc import Iterator
from typing import Any

from muster.cli import runs
from muster.cli.client import Api, Refused
from muster.cli.runs import Run

MOST = 20  # lines beside a table; `muster run messages` has them all


def read(api: Api, run: Run, step: str | None = None) -> list[dict[str, Any]]:
    return api.all(f"{run.path}/messages", {"step": step})


def beside(api: Api, run: Run, step: str | None = None) -> list[str]:
    """The first ones, to stand beside results; none where they can't be read, for they are not the matter."""
    try:
        page = api.get(f"{run.path}/messages", {"step": step, "$top": MOST})
    except Refused:
        return []
    said = list(lines(page["value"]))
    if len(said) <= MOST and not page.get("nextLink"):
        return said
    return [*said[:MOST], f"There are more: muster run messages {run.id}"]


def lines(found: list[dict[str, Any]]) -> Iterator[str]:
    """As psql shows them, behind the target."""
    for each in found:
        for notice in each["notices"]:
            yield f"{runs.name(each)}: {notice.get('severity', 'NOTICE')}: {notice['message']}"
            for key in ("detail", "hint"):
                if notice.get(key):
                    yield f"{runs.name(each)}:   {key}: {notice[key]}"


def rows(found: list[dict[str, Any]]) -> list[list[Any]]:
    return [
        [
            each.get("stepName"),
            each.get("serverName"),
            each.get("databaseName"),
            each.get("schemaName"),
            each.get("attempt"),
            notice.get("severity"),
            notice.get("sqlstate"),
            notice["message"],
        ]
        for each in found
        for notice in each["notices"]
    ]
