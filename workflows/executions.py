"""Executions of jobs, of their steps and on their targets: started, stopped, read."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from nodeagent import items as wire
from nodeagent.items import (
    About,
    CancelExecution,
    ContinueExecution,
    Kind,
    ReadExecution,
    RerunExecution,
    RetryTarget,
    StartJob,
)
from workflows import access, items, target_servers
from workflows.access import path_of
from workflows.accesscache import Access
from workflows.items import Family, is_uuid, present
from workflows.model.item import Item, WrittenItem
from workflows.model.resource import Body, Call, Page
from workflows.services import Services

MOST = 2**62  # the control database adds to it
PAGE = 1000
RERUN_KINDS = ("failed", "timedOut", "canceled", "skipped", "unknown", "succeeded")
MOST_SETS = 10_000
LONGEST_REASON = 1000  # of a cancellation
DELETED = "includeDeleted"
LIFECYCLES = {
    "Created",
    "InProgress",
    "WaitingForChildJobExecutions",
    "WaitingForRetry",
    "Succeeded",
    "SucceededWithSkipped",
    "Failed",
    "TimedOut",
    "Canceled",
    "Skipped",
}


def shown(properties: dict[str, Any], _: Access) -> dict[str, Any]:
    document: dict[str, Any] = present(properties)
    return document


class Cursor(msgspec.Struct, frozen=True):
    after: str  # of the control database
    left: int | None  # of what $top asked for


@dataclass(frozen=True)
class Runs(Family):
    """Listed newest first; `listed` is the list's kind where it is not that of the items."""

    listed: Kind | None = None

    async def raw(self, services: Services, call: Call, id: ResourceId) -> wire.Item:
        """Also of a job that was deleted, where that is asked for."""
        wanted, _ = filters(call.query)
        if not wanted.get(DELETED):
            return await super().raw(services, call, id)
        document = await read(services, call, id, self.kind, wanted)
        return msgspec.convert(document, wire.Item)

    async def list_page(
        self, services: Services, call: Call, scope: ResourceId, after: str | None, top: int
    ) -> Page:
        """Here $top limits the whole list, as Azure says, and not only a page."""
        wanted, left = filters(call.query)
        cursor = msgspec.json.decode(after, type=Cursor) if after else None
        left = cursor.left if cursor else left
        size = top if left is None else min(left, PAGE)
        begin = cursor.after if cursor else None
        page = await self.page(services, call, scope, begin, size, kind=self.listed, filters=wanted)
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
ATTEMPTS = Runs("jobs/executions/steps/targets/attempts", shown)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Starts the job under an id that the caller chose; one that exists is only shown."""
    del body
    here = await items.enter(services, call, id)
    job, name = path_of(id)
    if not is_uuid(name):
        refuse([FieldError("name", f"'{name[:100]}' is no uuid.", "InvalidResourceName")])
    await check_start(services, call, id)
    command = StartJob(job=job, execution_id=UUID(name))
    return await FAMILY.put(services, call, id, here, command)


async def check_start(services: Services, call: Call, id: ResourceId) -> None:
    """Refuses unless the caller may use the servers that the job of `id` leads to."""
    job = path_of(id)[0]
    caller = target_servers.beyond_token_scope(call)
    await target_servers.check_reached(services, caller, id, "jobs", [job], "jobName")


async def _check_targets(services: Services, call: Call, id: ResourceId) -> None:
    """The same for the targets that the execution has: the job's groups may lead elsewhere by now."""
    name = path_of(id)[1].lower()
    caller = target_servers.beyond_token_scope(call)
    await target_servers.check_reached(services, caller, id, "executions", [name], "jobExecutionId")


async def resume(services: Services, call: Call, id: ResourceId) -> Item:
    """Targets start again, so the caller must be allowed to use their servers."""
    await check_start(services, call, id)
    await _check_targets(services, call, id)
    return await _continue(services, call, id, "resume/action", abort=False)


async def abort(services: Services, call: Call, id: ResourceId) -> Item:
    """No lock forbids it, as with cancel."""
    return await _continue(services, call, id, "abort/action", abort=True)


async def _continue(
    services: Services, call: Call, id: ResourceId, action: str, *, abort: bool
) -> Item:
    here = await items.enter(services, call, id, locks=not abort)
    items.possible(FAMILY.kind, path_of(id), id)
    job, name = path_of(id)
    command = ContinueExecution(job=job, execution_id=UUID(name), abort=abort)
    written = await items.write(services, call, id, here, FAMILY.action(action), command)
    return FAMILY.item(written.item, here)


async def rerun(services: Services, call: Call, id: ResourceId, body: dict[str, Any]) -> Item:
    """Starts the job again on targets of this execution."""
    here = await items.enter(services, call, id)
    items.possible(FAMILY.kind, path_of(id), id)
    refuse(_rerun_errors(body))
    await check_start(services, call, id)
    await _check_targets(services, call, id)
    job, name = path_of(id)
    command = RerunExecution(job=job, execution_id=UUID(name), document=body)
    written = await items.write(services, call, id, here, FAMILY.action("rerun/action"), command)
    return FAMILY.item(written.item, here)


async def retry(services: Services, call: Call, id: ResourceId) -> Item:
    """The target starts again, so the caller must be allowed to use its server."""
    here = await items.enter(services, call, id)
    items.possible(OF_TARGET.kind, path_of(id), id)
    await check_start(services, call, id)
    await _check_targets(services, call, id)
    job, name, step, target = path_of(id)
    command = RetryTarget(job=job, execution_id=UUID(name), step=step, target=target)
    written = await items.write(services, call, id, here, OF_TARGET.action("retry/action"), command)
    return OF_TARGET.item(written.item, here)


def _rerun_errors(body: dict[str, Any]) -> list[FieldError]:
    if "only" in body and "targets" in body:
        return [FieldError("targets", "Name the targets, or say how they ended with 'only'.")]
    known = {kind.lower() for kind in RERUN_KINDS}
    only = body.get("only")
    if only is not None and not 0 < len(only) <= len(known):
        return [FieldError("only", f"One or several of {', '.join(RERUN_KINDS)}, each once.")]
    if any(kind.lower() not in known for kind in only or ()):
        return [FieldError("only", f"One or several of {', '.join(RERUN_KINDS)}.")]
    targets = body.get("targets")
    if targets is not None and not (targets and all(map(is_uuid, targets))):
        return [FieldError("targets", "Ids of targets, as the execution lists them.")]
    return []


async def cancel(services: Services, call: Call, id: ResourceId, body: dict[str, Any]) -> None:
    """No lock forbids it, and the answer is empty, as Azure's clients want it."""
    await _cancel(services, call, id, FAMILY, body)


async def cancel_step(services: Services, call: Call, id: ResourceId, body: dict[str, Any]) -> None:
    """The other steps go on as the outcome of this one lets them."""
    await _cancel(services, call, id, OF_STEP, body)


async def cancel_target(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> None:
    """The other targets go on."""
    await _cancel(services, call, id, OF_TARGET, body)


async def _cancel(
    services: Services, call: Call, id: ResourceId, family: Family, body: dict[str, Any]
) -> None:
    here = await items.enter(services, call, id, locks=False)
    items.possible(family.kind, path_of(id), id)
    if len(body.get("reason") or "") > LONGEST_REASON:
        refuse([FieldError("reason", f"At most {LONGEST_REASON} characters.")])
    job, name, *part = path_of(id)
    command = CancelExecution(
        job=job,
        execution_id=UUID(name),
        reason=body.get("reason"),
        **dict(zip(("step", "target"), part, strict=False)),
    )
    await items.write(services, call, id, here, family.action("cancel/action"), command)


async def read(
    services: Services, call: Call, id: ResourceId, kind: Kind | About, options: dict[str, Any]
) -> dict[str, Any]:
    """An execution in the control database, or a report on it."""
    path = path_of(id)
    await access.of(services, call, id)  # a missing account is reported first
    items.possible(OF_PATH[len(path)].kind, path, id)
    command = ReadExecution(kind=kind, path=path, options=options)
    document: dict[str, Any] = (await access.look(services, call, id, command)).answer
    return document


def filters(query: dict[str, str]) -> tuple[dict[str, Any], int | None]:
    """What the query asks for, and the limit of $top; every wrong one is an error."""
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


def _wave(text: str) -> int | None:
    number = _count(text)
    return number if number is not None and number < 2**31 else None


def _lifecycles(text: str) -> list[str] | None:
    wanted = text.split(",")
    return wanted if LIFECYCLES.issuperset(wanted) else None


def _set(text: str) -> int | None:
    number = _count(text)
    return number if number is not None and number <= MOST_SETS else None


OF_PATH = {len(family.kind.split("/")): family for family in (FAMILY, OF_STEP, OF_TARGET, ATTEMPTS)}
TIME = (_time, "a time such as 2031-01-01T00:00:00Z")
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "createTimeMin": TIME,
    "createTimeMax": TIME,
    "endTimeMin": TIME,
    "endTimeMax": TIME,
    "isActive": (_boolean, "true or false"),
    DELETED: (_boolean, "true or false"),
    "lifecycle": (_lifecycles, f"one or several of {', '.join(sorted(LIFECYCLES))}"),
    "server": (str, "the name of a server"),
    "fingerprint": (str, "the fingerprint of an error"),
    "step": (str, "the name of a step"),
    "wave": (_wave, "a number from 1 on"),
    "set": (_set, f"a number from 1 to {MOST_SETS}"),
    "$skip": (_number, "a number from 0 on"),
    "$top": (_count, "a number from 1 on"),
}
