"""The rows of a result set, streamed: never more than one page of them is in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from muster.core.errors import Conflict, Unavailable
from muster.core.ids import ResourceId
from workflows import executions
from workflows.model.resource import Call
from workflows.services import Services

TARGET = ("target_server", "target_database", "target_schema")  # before the columns of a result
TARGET_FIELDS = ("serverName", "databaseName", "schemaName")  # the same in the control database
PAGE = 1000  # rows
MOST_COLUMNS = 5_000  # of all targets together, in CSV


@dataclass(frozen=True)
class Part:
    """Rows that have the same columns."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Rows:
    """`columns` are those of all parts; a part has some of them, in its own order."""

    columns: list[str]
    pages: AsyncIterator[list[Part]]
    targets: int = 1  # that returned the result set
    truncated: int = 0  # targets of which not all rows were kept


async def of_run(services: Services, call: Call, id: ResourceId) -> Rows:
    """Of all targets that had succeeded when it began, each row with its target."""
    wanted, _ = executions.filters(call.query)
    shape = await _shape(services, call, id, wanted)
    if len(shape.columns) > MOST_COLUMNS:
        raise Conflict(
            f"The targets returned more than {MOST_COLUMNS} different columns: read single attempts.",
            code="TooManyColumns",
        )
    pages = _pages(services, call, id, wanted, shape)
    first = await anext(pages)  # what can be refused is refused before the answer begins
    return Rows(list(shape.columns), _joined(first, pages), shape.targets, shape.truncated)


async def of_attempt(services: Services, call: Call, id: ResourceId) -> Rows:
    """A host keeps few rows of a result set: one page has them all."""
    wanted, _ = executions.filters(call.query)
    kept = await executions.read(services, call, id, "attemptResults", wanted)
    columns = distinct(each["name"] for each in kept["columns"])
    truncated = 1 if kept["truncated"] else 0
    return Rows(columns, _one([Part(columns, kept["rows"])]), truncated=truncated)


def distinct(names: Any) -> list[str]:
    """A result may have several columns of one name: the second one gets the suffix _2."""
    made: dict[str, None] = {}
    for name in names:
        number, free = 1, name
        while free in made:
            number += 1
            free = f"{name}_{number}"
        made[free] = None
    return list(made)


@dataclass
class _Shape:
    until: str = ""
    targets: int = 0
    truncated: int = 0
    columns: dict[str, None] = field(default_factory=lambda: dict.fromkeys(TARGET))


async def _shape(services: Services, call: Call, id: ResourceId, wanted: dict[str, Any]) -> _Shape:
    """Columns and numbers of targets, which a file needs before its first row."""
    shape, after = _Shape(), None
    while True:
        options = {**wanted, "after": after}
        page = await executions.read(services, call, id, "resultColumns", options)
        for names in page["columns"]:
            shape.columns |= dict.fromkeys(distinct([*TARGET, *names]))
        shape.targets += page["targets"]
        shape.truncated += page["truncated"]
        shape.until = page["until"]
        after = page["next"]
        if after is None or len(shape.columns) > MOST_COLUMNS:
            return shape


async def _pages(
    services: Services, call: Call, id: ResourceId, wanted: dict[str, Any], shape: _Shape
) -> AsyncIterator[list[Part]]:
    """Ends with an error, and the stream with it, unless it had all that was announced."""
    after: dict[str, Any] | None = {"ordinal": 0, "row": 0, "until": shape.until}
    targets = truncated = 0
    while after is not None:
        options = {**wanted, "top": PAGE, "after": after}
        page = await executions.read(services, call, id, "results", options)
        for part in page["parts"]:
            if part["firstRow"] == 0:
                targets += 1
                truncated += bool(part["truncated"])
        parts = [_part(each) for each in page["parts"]]
        if not all(shape.columns.keys() >= set(part.columns) for part in parts):
            raise _changed()
        yield parts
        after = page["next"]
    if (targets, truncated) != (shape.targets, shape.truncated):
        raise _changed()


def _changed() -> Unavailable:
    return Unavailable("The results changed while they were read.", code="ResultsChanged")


def _part(part: dict[str, Any]) -> Part:
    target = [part[name] for name in TARGET_FIELDS]
    columns = distinct([*TARGET, *part["columns"]])
    return Part(columns, [[*target, *row] for row in part["rows"]])


async def _joined(
    first: list[Part], following: AsyncIterator[list[Part]]
) -> AsyncIterator[list[Part]]:
    yield first
    async for parts in following:
        yield parts


async def _one(parts: list[Part]) -> AsyncIterator[list[Part]]:
    yield parts
