"""Notices of targets: each line with the target that sent it."""

from collections.abc import Iterator
from typing import Any

from muster.cli import runs
from muster.cli.client import Api, Refused
from muster.cli.output import many
from muster.cli.runs import Run

LOOKED_AT = 200  # targets whose notices are compared
MOST = 20  # lines beside a table; `muster run messages` has them all


def read(api: Api, run: Run, step: str | None = None) -> list[dict[str, Any]]:
    return api.all(f"{run.path}/messages", {"step": step})


def beside(api: Api, run: Run, step: str | None = None) -> list[str]:
    """The first ones, to stand beside results; none where they can't be read, for they are not the matter."""
    try:
        page = api.get(f"{run.path}/messages", {"step": step, "$top": LOOKED_AT})
    except Refused:
        return []
    notices = lines(page["value"])
    if len(notices) <= MOST and not page.get("nextLink"):
        return notices
    return [*notices[:MOST], f"There are more: muster run messages {run.id}"]


def lines(messages: list[dict[str, Any]]) -> list[str]:
    """As psql shows them, after the target; what several targets say in the same words stands there once."""
    targets: dict[str, list[str]] = {}
    for each in messages:
        for notice in each["notices"]:
            for text in _lines(notice):
                targets.setdefault(text, []).append(runs.name(each))
    return [f"{_some(dict.fromkeys(names))}: {text}" for text, names in targets.items()]


def _lines(notice: dict[str, Any]) -> Iterator[str]:
    yield f"{notice.get('severity', 'NOTICE')}: {notice['message']}"
    for key in ("detail", "hint"):
        if notice.get(key):
            yield f"  {key}: {notice[key]}"


def _some(names: dict[str, None]) -> str:
    first, *others = names
    return f"{first} and {many(len(others), 'other target')}" if others else first


def rows(messages: list[dict[str, Any]]) -> list[list[Any]]:
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
        for each in messages
        for notice in each["notices"]
    ]
