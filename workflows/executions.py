"""Executions of jobs, of their steps and on their targets: started, stopped, read."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from nodeagent.items import CancelExecution, Kind, StartJob
from workflows import items
from workflows.access import path_of
from workflows.accesscache import Access
from workflows.items import Family, is_uuid, present
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call, Page
from workflows.plane import Plane

MOST = 2**63 - 1
PAGE = 1000


def shown(properties: dict[str, Any], _: Access) -> dict[str, Any]:
    found: dict[str, Any] = present(properties)
    return found


class Cursor(msgspec.Struct, frozen=True):
    after: str  # of the control database
    left: int | None  # of what $top asked for


@dataclass(frozen=True)
class Runs(Family):
    """Listed newest first; `listed` is the list's kind where it is not that of the items."""

    listed: Kind | None = None

    async def list_page(
        self, plane: Plane, call: Call, scope: ResourceId, after: str | None, top: int
    ) -> Page:
        """Here $top limits the whole list, as Azure says, and not only a page."""
        wanted, left = filters(call.query)
        cursor = msgspec.json.decode(after, type=Cursor) if after else None
        left = cursor.left if cursor else left
        size = top if left is None else min(left, PAGE)
        begin = cursor.after if cursor else None
        page = await self.page(plane, call, scope, begin, size, kind=self.listed, filters=wanted)
        left = None if left is None else left - len(page.items)
        if page.next is None or left == 0:
            return msgspec.structs.replace(page, next=None)
        more = msgspec.json.encode(Cursor(page.next, left)).decode()
        return msgspec.structs.replace(page, next=more)


FAMILY = Runs("jobs/executions", shown)
OF_ACCOUNT = Runs("jobs/executions", shown, listed="executions")
OF_STEP = Runs("jobs/executions/steps", shown)
OF_TARGET = Runs("jobs/executions/steps/targets", shown)
OF_ALL_STEPS = Runs("jobs/executions/steps/targets", shown, listed="jobs/executions/targets")


async def put(plane: Plane, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Starts the job under an id that the caller chose; one that exists is only shown."""
    del body
    here = await items.enter(plane, call, id)
    job, name = path_of(id)
    if not is_uuid(name):
        refuse([FieldError("name", f"'{name[:100]}' is no uuid.", "InvalidResourceName")])
    command = StartJob(job=job, execution_id=UUID(name))
    return await FAMILY.put(plane, call, id, here, command)


async def cancel(plane: Plane, call: Call, id: ResourceId, body: dict[str, Any]) -> None:
    """No lock forbids it, and the answer is empty, as Azure's clients want it."""
    here = await items.enter(plane, call, id, locks=False)
    items.possible(FAMILY.kind, path_of(id), id)
    job, name = path_of(id)
    command = CancelExecution(job=job, execution_id=UUID(name), reason=body.get("reason"))
    await items.write(plane, call, id, here, FAMILY.action("cancel/action"), command)


def filters(query: dict[str, str]) -> tuple[dict[str, Any], int | None]:
    """What the query asks for, and the limit of $top; every wrong one is told."""
    errors: list[FieldError] = []
    wanted: dict[str, Any] = {}
    for name in [name for name in READERS if name in query]:
        read, expected = READERS[name]
        wanted[name] = read(query[name])
        if wanted[name] is None:
            errors.append(FieldError(name, f"'{query[name][:50]}' is not {expected}."))
    refuse(errors)
    top = wanted.pop("$top", None)
    if "$skip" in wanted:
        wanted["skip"] = wanted.pop("$skip")
    return wanted, top


def _time(text: str) -> str | None:
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC).isoformat() if at.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


def _number(text: str) -> int | None:
    good = text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MOST
    return int(text) if good else None


def _count(text: str) -> int | None:
    return _number(text) or None


TIME = (_time, "a time such as 2031-01-01T00:00:00Z")
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "createTimeMin": TIME,
    "createTimeMax": TIME,
    "endTimeMin": TIME,
    "endTimeMax": TIME,
    "isActive": (_boolean, "true or false"),
    "includeDeleted": (_boolean, "true or false"),
    "$skip": (_number, "a number from 0 on"),
    "$top": (_count, "a number from 1 on"),
}
