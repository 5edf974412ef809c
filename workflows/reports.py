"""Reports about an execution: progress, errors, results, why it waits."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

import msgspec

from muster.core.errors import Conflict
from muster.core.ids import ResourceId
from nodeagent.items import Ask
from workflows import access, engine_requests, executions
from workflows.items import present
from workflows.model.item import Report
from workflows.model.resource import Call, Page
from workflows.services import Services

OF_TARGET = ("serverName", "databaseName", "schemaName")  # before the columns of a result
MOST_CELLS = 1_000_000  # of a page; the control database ends a page before
PATIENCE = 8.0  # seconds for the engine to say why a target waits
SILENT = "the engine did not answer"


async def summary(services: Services, call: Call, id: ResourceId) -> Report:
    wanted, _ = executions.filters(call.query)
    document = await executions.read(services, call, id, "summary", wanted)
    shown = present(document["summary"])
    shown["steps"] = [present(step) for step in shown["steps"]]
    return Report(content=shown, tag=document["etag"])


async def errors(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """While targets still fail, counts and with them the order move from page to page."""
    page = await executions.read(services, call, id, "errors", _paged(call, after, top))
    return Page(items=[present(each) for each in page["items"]], next=_next(page))


async def messages(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """What targets said beside their results."""
    page = await executions.read(services, call, id, "messages", _paged(call, after, top))
    return Page(items=page["items"], next=_next(page))


async def results(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Report:
    """The rows of all targets that succeeded, one set of them, page by page."""
    wanted = _paged(call, after, top)
    document = await executions.read(services, call, id, "results", wanted)
    content = {
        "stepName": document["stepName"],
        "set": wanted.get("set", 1),
        **joined(document["parts"]),
        "targets": document["targets"],
    }
    return Report(content=present(content), next=_next(document))


async def command_tags(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """What each statement did at each target that succeeded."""
    page = await executions.read(services, call, id, "commandTags", _paged(call, after, top))
    return Page(items=[_tagged(each) for each in page["items"]], next=_next(page))


def _tagged(target: dict[str, Any]) -> dict[str, Any]:
    return {**target, "commandTags": [present(each) for each in target["commandTags"]]}


async def attempt_results(services: Services, call: Call, id: ResourceId) -> Report:
    """One of the result sets that an attempt returned, as far as it was kept."""
    wanted, _ = executions.filters(call.query)
    document = await executions.read(services, call, id, "attemptResults", wanted)
    return Report(content=present(document))


async def attempt_messages(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    page = await executions.read(services, call, id, "attemptMessages", _paged(call, after, top))
    return Page(items=page["items"], next=_next(page))


async def why(services: Services, call: Call, id: ResourceId) -> Report:
    """As far as the rows tell; for whose turn it is the engine is asked."""
    wanted, _ = executions.filters(call.query)
    document = await executions.read(services, call, id, "why", wanted)
    reason = document["why"]
    if document["ask"] is not None:
        answer = await _asked(services, call, id, document["ask"])
        details = {**reason["details"], **(answer.pop("details", None) or {})}
        reason = {
            **reason,
            **({} if reason.get("message") else present(answer)),
            "details": details,
        }
    return Report(content=present(reason))


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One table of what several targets returned: columns meet by name, in the order they come in."""
    names = {each for part in parts for each in _numbered(part["columns"])}
    if len(names) * sum(len(part["rows"]) for part in parts) > MOST_CELLS:
        raise Conflict(
            "The control database answered with more results than a page can have.",
            code="ControlSchemaDamaged",
        )
    columns: dict[tuple[str, int], int] = {}
    rows: list[list[Any]] = []
    for part in parts:
        places = [columns.setdefault(each, len(columns)) for each in _numbered(part["columns"])]
        target = [part[name] for name in OF_TARGET]
        for row in part["rows"]:
            values = dict(zip(places, row, strict=False))
            rows.append([*target, *(values.get(place) for place in range(len(columns)))])
    width = len(OF_TARGET) + len(columns)
    return {
        "columns": [*OF_TARGET, *(name for name, _ in columns)],
        "rows": [row + [None] * (width - len(row)) for row in rows],
        "truncated": any(part["truncated"] for part in parts),
    }


def _numbered(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """A result may have two columns of one name: the second one is another."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name, seen[name]


async def _asked(
    services: Services, call: Call, id: ResourceId, args: dict[str, Any]
) -> dict[str, Any]:
    request_id = uuid4()
    question = Ask(request_id=request_id, kind="why", args=args)
    await access.look(services, call, id, question, command_id=request_id)
    answer = await engine_requests.answer(services, call, id, request_id, PATIENCE)
    if answer is None:
        return {"message": SILENT}
    if wrong := answer.get("error"):
        return {"message": wrong.get("message", SILENT)}
    return {name: answer[name] for name in ("waitReason", "message", "details") if name in answer}


def _paged(call: Call, after: str | None, top: int) -> dict[str, Any]:
    wanted, _ = executions.filters(call.query)
    return {**wanted, "top": top, "after": msgspec.json.decode(after) if after else None}


def _next(page: dict[str, Any]) -> str | None:
    return None if page["next"] is None else msgspec.json.encode(page["next"]).decode()
