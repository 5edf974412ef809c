"""Answers requests of the control plane that need the engine: only the engine reaches the targets."""

import asyncio
import contextlib
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from itertools import chain, islice
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import asyncpg
import msgspec

from engine.context.core_context import CoreContext
from engine.core.examinations import Examinations
from engine.core.plans import PlanMaker
from engine.core.runs.wait_reason import why
from engine.core.service import Service
from engine.db.control_connection import ControlConnection
from engine.db.control_db import ControlDatabase
from engine.model.group_document import Document
from engine.model.task import application_name
from engine.targets.resolution import Excluded, Resolution, SkippedDatabase, Target
from engine.targets.resolver import Resolver
from muster.core import telemetry
from muster.core.errors import Fault, Unavailable
from muster.core.sql import Queries

log = telemetry.get(__name__)
Q = Queries("engine.db.queries", "instance.sql", "executions.sql")
A = Queries("engine.access", "target.sql")

APPLICATION = "muster-onlooker"
BLOCKERS_TIMEOUT = 5.0  # seconds to read the blockers of an attempt at its target

POLL_INTERVAL = timedelta(seconds=5)  # a notification may be lost
RESOLVE_TIMEOUT = 20.0  # seconds; the control plane waits a little longer
MAX_ELEMENTS = 10_000  # elements of one list of an answer
MAX_BYTES = 4 * 1024 * 1024  # of the lists of one answer
MAX_MESSAGE_LENGTH = 1000  # characters of a server's message
MAX_PARALLEL_REQUESTS = 4
MAX_PARALLEL_EXAMINATIONS = 2  # they take long, and other requests do not wait for them
EXAMINATIONS = ("doctor", "login")


class Requests(Service):
    name = "requests"
    channels = ("muster_request",)

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._connection = ControlConnection(context.store)
        self._examinations = Examinations(context, self._connection)
        self._serving: dict[UUID, asyncio.Task[None]] = {}
        self._parallel = asyncio.Semaphore(MAX_PARALLEL_REQUESTS)
        self._examining = asyncio.Semaphore(MAX_PARALLEL_EXAMINATIONS)
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            for task in self._serving.values():
                task.cancel()
            self._connection.disconnect()

    @property
    def pause(self) -> timedelta:
        return min(POLL_INTERVAL, self.context.heartbeat)

    async def run_once(self) -> None:
        store = self.context.store
        async with store.calling() as tx:
            rows = await tx.fetch(Q.open_requests, store.epoch)
        for row in rows:
            request: UUID = row["request_id"]
            if request not in self._serving:
                task = self._serving[request] = asyncio.create_task(self._serve(row))
                task.add_done_callback(partial(self._on_served, request))
        self.status = f"answers {len(self._serving)} requests" if self._serving else "idle"

    def _on_served(self, request: UUID, task: "asyncio.Task[None]") -> None:
        del self._serving[request]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("request has no answer", request=request, why=repr(error))

    async def _serve(self, row: Any) -> None:
        """A request that fails gets an error as its answer: no request may end the engine.

        A caller has one request of a kind at a time, so that others do not wait for all of them.
        """
        request: UUID = row["request_id"]
        asked_at = self.context.clock.monotonic()
        args: dict[str, Any] = msgspec.json.decode(row["args"])
        examines = row["kind"] in EXAMINATIONS
        # Functions of an older version do not name the caller.
        key = (
            args.get("askedBy", str(request)),
            "examination" if examines else "why" if row["kind"] == "why" else "listing",
        )
        turn = self._turns.setdefault(key, asyncio.Lock())
        async with turn, self._examining if examines else self._parallel:
            if self.context.clock.monotonic() > asked_at + RESOLVE_TIMEOUT:
                return  # the caller no longer waits
            try:
                await self._write(request, await self._answer(request, row["kind"], args))
            except Fault as fault:
                log.warning("request is postponed", request=request, why=fault.message)
            except Exception:
                log.exception("request failed", request=request)
                error = {"code": "InternalServerError", "message": "It could not be answered."}
                await self._write(request, {"error": error})

    async def _answer(self, request: UUID, kind: str, args: dict[str, Any]) -> dict[str, Any]:
        if kind == "why":
            target = UUID(args["run"]), args["stepId"], args["ordinal"]
            return await self._running(*target) or why(self.context.cluster_state, *target)
        try:
            async with asyncio.timeout(RESOLVE_TIMEOUT):
                match kind:
                    case "plan":
                        shown = partial(resolution_answer, space=AnswerSpace())
                        await PlanMaker(self.context, shown).make(request, args["job"])
                        return {}
                    case "doctor":
                        return await self._examinations.doctor(
                            args["targetGroup"], args.get("after")
                        )
                    case "login":
                        return await self._examinations.test(
                            args["credential"], args["serverIds"], args.get("databaseName")
                        )
                    case _:
                        return resolution_answer(await self._resolve(args["targetGroup"]))
        except TimeoutError:
            fault: Fault = Unavailable("The servers did not answer in time.", code="ResolveTimeout")
        except Fault as error:
            if error.code == "ControlDatabaseUnavailable":
                raise
            fault = error
        return {"error": {"code": fault.code, "message": fault.message}}

    async def _running(self, run: UUID, step_id: int, ordinal: int) -> dict[str, Any] | None:
        """For a running attempt its blockers, if they could be read; None when it does not run."""
        key = self.context.store.epoch, run, step_id, ordinal
        rows = await self._connection.fetch(Q.running_attempt, *key)
        if not rows:
            return None
        details: dict[str, Any] = {}
        with contextlib.suppress(Fault, TimeoutError, OSError, asyncpg.PostgresError):
            async with asyncio.timeout(BLOCKERS_TIMEOUT):
                blockers = await self._blockers(rows[0])
                details = {} if blockers is None else {"blockers": blockers}
        return {"details": details}

    async def _blockers(self, task: Any) -> list[dict[str, Any]] | None:
        targets = self.context.targets
        server_connection = await targets.server_connection(
            self._connection, task["server_id"], task["credential_id"]
        )
        if server_connection is None:
            return None
        session = server_connection.session(task["database_name"], APPLICATION)
        async with targets.admin_lock(server_connection.server.server_id), session as connection:
            backend = (
                server_connection.pid(task["backend_pid"]),
                application_name(task["invocation_id"]),
            )
            return [dict(row) for row in await connection.fetch(A.blockers, *backend)]

    async def _resolve(self, group: str) -> Resolution:
        document = await read_document(self.context.store, group)
        return await Resolver(document, self.context.targets.discovery(document)).resolve(
            check_named=True
        )

    async def _write(self, request: UUID, answer: dict[str, Any]) -> None:
        store = self.context.store
        async with store.calling() as tx:
            text = msgspec.json.encode(answer).decode()
            await tx.execute(Q.answer_request, store.epoch, request, text)


async def read_document(store: ControlDatabase, group: str) -> Document:
    async with store.calling() as tx:
        return msgspec.json.decode(await tx.fetchval(Q.group_document, group), type=Document)


def resolution_answer(resolution: Resolution, space: "AnswerSpace | None" = None) -> dict[str, Any]:
    """As REST shows it. Counts are of all elements; `truncated` when a list is too long to be shown whole."""
    unreachable = [target for target in resolution.targets if target.error is not None]
    targets = [target for target in resolution.targets if target.error is None]
    skipped = [*resolution.skipped, *resolution.unselected]
    left_out = chain(
        (_excluded(each, resolution) for each in resolution.excluded),
        (_skipped(each, resolution) for each in skipped),
    )
    space = space or AnswerSpace()
    shown = {
        "unreachable": space.fill(_unreachable(target, resolution) for target in unreachable),
        "missing": space.fill(_missing(target, resolution) for target in resolution.missing),
        "targets": space.fill(_target(target, resolution) for target in targets),
        "leftOut": space.fill(left_out),
    }
    counts = {
        "count": len(targets),
        "leftOutCount": len(skipped) + len(resolution.excluded),
        "missingCount": len(resolution.missing),
        "unreachableCount": len(unreachable),
    }
    not_shown = sum(counts.values()) - sum(map(len, shown.values()))
    return {**counts, "truncated": not_shown > 0, "notShownCount": not_shown, **shown}


class AnswerSpace:
    """The bytes that are left of an answer."""

    def __init__(self) -> None:
        self._left = MAX_BYTES

    def fill(self, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """As many elements as a list may have and the answer has space for."""
        shown = []
        for item in islice(items, MAX_ELEMENTS):
            self._left -= len(msgspec.json.encode(item))
            if self._left < 0:
                break
            shown.append(item)
        return shown


def _skipped(each: SkippedDatabase, resolution: Resolution) -> dict[str, Any]:
    place = {"serverName": each.server, "databaseName": each.database}
    state = {"included": False, "exists": each.exists, "reason": each.reason}
    return {**place, **state, **_rule(each.rule, resolution)}


def _unreachable(target: Target, resolution: Resolution) -> dict[str, Any]:
    assert target.error is not None
    message = target.error.message[:MAX_MESSAGE_LENGTH]
    why = {"code": target.error.code, "message": message}
    return {**_place(target), **why, **_rule(target.rule, resolution)}


def _missing(target: Target, resolution: Resolution) -> dict[str, Any]:
    state = {"included": False, "exists": False}
    return {**_place(target), **state, **_rule(target.rule, resolution)}


def _excluded(each: Excluded, resolution: Resolution) -> dict[str, Any]:
    state = {"included": False, "reason": "Excluded", "excludedBy": each.text}
    included_by = resolution.rules.get(each.target.rule)
    if included_by is not None:
        state["includedBy"] = included_by.text
    return {**_place(each.target), **state, **_rule(each.rule, resolution)}


def _rule(id: UUID | None, resolution: Resolution) -> dict[str, Any]:
    """The member that decided: its targetId, and as users read it."""
    if id is None:
        return {}
    rule = resolution.rules.get(id)
    if rule is None:
        return {"rule": str(id)}
    member = {"targetGroup": rule.group, "position": rule.position, "text": rule.text}
    return {"rule": str(id), "member": member}


def _place(target: Target) -> dict[str, str]:
    shown = {
        "serverName": target.server.name,
        "databaseName": target.database,
        "schemaName": target.schema,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _target(target: Target, resolution: Resolution) -> dict[str, Any]:
    unchecked = resolution.unchecked.get(target.key)
    shown = {
        "type": target.type,
        "serverName": target.server.name,
        "elasticPoolName": target.pool,
        "databaseName": target.database,
        "schemaName": target.schema,
        "labels": target.labels or None,
        "included": True,
        "exists": None if unchecked else True,
        **_rule(target.rule, resolution),
        # It is only named, and its server could not be listed.
        "unchecked": unchecked
        and {"code": unchecked.code, "message": unchecked.message[:MAX_MESSAGE_LENGTH]},
    }
    return {name: value for name, value in shown.items() if value is not None}
