"""Answers what only the engine can know, since it alone reaches the targets."""

import asyncio
import contextlib
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from engine.context.core_context import CoreContext
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
LOOK_LIMIT = 5.0  # seconds to look at a target

POLL = timedelta(seconds=5)  # in case a wake-up was lost
LIMIT = 20.0  # seconds for one answer; who asks waits a little longer
MOST_SHOWN = 10_000  # elements of one list of an answer
MOST_BYTES = 4 * 1024 * 1024  # of the lists of one answer
LONGEST_MESSAGE = 1000  # characters of what a server said
TOGETHER = 4  # questions that are answered side by side


class Requests(Service):
    name = "requests"
    channels = ("muster_request",)

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._connection = ControlConnection(context.store)

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._connection.hang_up()

    @property
    def pause(self) -> timedelta:
        return min(POLL, self.context.heartbeat)

    async def run_once(self) -> None:
        store = self.context.store
        async with store.calling() as tx:
            asked = await tx.fetch(Q.open_requests, store.epoch)
        self.status = f"answers {len(asked)} questions" if asked else "idle"
        room = asyncio.Semaphore(TOGETHER)
        async with asyncio.TaskGroup() as group:
            for row in asked:
                group.create_task(self._serve(row, room))

    async def _serve(self, row: Any, room: asyncio.Semaphore) -> None:
        """One that can't be answered is told so: a question must never end the engine."""
        request: UUID = row["request_id"]
        async with room:
            try:
                args = msgspec.json.decode(row["args"])
                await self._tell(request, await self._answer(row["kind"], args))
            except Fault as fault:
                log.warning("a question waits", request=request, why=fault.message)
            except Exception:
                log.exception("a question could not be answered", request=request)
                error = {"code": "InternalServerError", "message": "It could not be answered."}
                await self._tell(request, {"error": error})

    async def _answer(self, kind: str, args: dict[str, Any]) -> dict[str, Any]:
        if kind == "why":
            which = UUID(args["run"]), args["stepId"], args["ordinal"]
            return await self._running(*which) or why(self.context.cluster_state, *which)
        try:
            async with asyncio.timeout(LIMIT):
                return told(await self._resolve(args["targetGroup"]))
        except TimeoutError:
            fault: Fault = Unavailable("The servers did not answer in time.", code="ResolveTimeout")
        except Unavailable as away:
            if away.code == "ControlDatabaseUnavailable":
                raise
            fault = away
        except Fault as refused:
            fault = refused
        return {"error": {"code": fault.code, "message": fault.message}}

    async def _running(self, run: UUID, step_id: int, ordinal: int) -> dict[str, Any] | None:
        """Of an attempt that runs: who holds what it waits for, unless nobody could look; else None."""
        asked = self.context.store.epoch, run, step_id, ordinal
        rows = await self._connection.fetch(Q.running_attempt, *asked)
        if not rows:
            return None
        details: dict[str, Any] = {}
        with contextlib.suppress(Fault, TimeoutError, OSError, asyncpg.PostgresError):
            async with asyncio.timeout(LOOK_LIMIT):
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
            which = (
                server_connection.pid(task["backend_pid"]),
                application_name(task["invocation_id"]),
            )
            return [dict(row) for row in await connection.fetch(A.blockers, *which)]

    async def _resolve(self, group: str) -> Resolution:
        document = await read_document(self.context.store, group)
        return await Resolver(document, self.context.targets.discovery(document)).resolve(
            check_named=True
        )

    async def _tell(self, request: UUID, answer: dict[str, Any]) -> None:
        store = self.context.store
        async with store.calling() as tx:
            text = msgspec.json.encode(answer).decode()
            await tx.execute(Q.answer_request, store.epoch, request, text)


async def read_document(store: ControlDatabase, group: str) -> Document:
    async with store.calling() as tx:
        return msgspec.json.decode(await tx.fetchval(Q.group_document, group), type=Document)


def told(found: Resolution) -> dict[str, Any]:
    """As REST shows it; `truncated`: a list is cut, since it or the answer is too long. Counts are of all."""
    away = [target for target in found.targets if target.error is not None]
    targets = [target for target in found.targets if target.error is None]
    left_out = [*map(_left_out, found.skipped), *map(_excluded, found.excluded)]
    missing = [{**_place(target), "rule": str(target.rule)} for target in found.missing]
    room = Room()
    shown = {
        "unreachable": room.fill(map(_unreachable, away)),
        "missing": room.fill(missing),
        "targets": room.fill(_target(target, found) for target in targets),
        "leftOut": room.fill(left_out),
    }
    counts = {
        "count": len(targets),
        "leftOutCount": len(left_out),
        "missingCount": len(missing),
        "unreachableCount": len(away),
    }
    truncated = sum(map(len, shown.values())) < sum(counts.values())
    return {**counts, "truncated": truncated, **shown}


class Room:
    """What is left of the size of an answer."""

    def __init__(self) -> None:
        self._left = MOST_BYTES

    def fill(self, items: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """As many as a list shows and the answer has room for."""
        shown = []
        for item in islice(items, MOST_SHOWN):
            self._left -= len(msgspec.json.encode(item))
            if self._left < 0:
                break
            shown.append(item)
        return shown


def _left_out(each: SkippedDatabase) -> dict[str, Any]:
    return {"serverName": each.server, "databaseName": each.database, "reason": each.reason}


def _unreachable(target: Target) -> dict[str, Any]:
    assert target.error is not None
    message = target.error.message[:LONGEST_MESSAGE]
    return {**_place(target), "code": target.error.code, "message": message}


def _excluded(each: Excluded) -> dict[str, Any]:
    why = {"reason": "Excluded", "rule": str(each.rule), "excludedBy": each.text}
    return {**_place(each.target), **why}


def _place(target: Target) -> dict[str, str]:
    shown = {
        "serverName": target.server.name,
        "databaseName": target.database,
        "schemaName": target.schema,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _target(target: Target, found: Resolution) -> dict[str, Any]:
    unchecked = found.unchecked.get(target.key)
    shown = {
        "type": target.type,
        "serverName": target.server.name,
        "elasticPoolName": target.pool,
        "databaseName": target.database,
        "schemaName": target.schema,
        "labels": target.labels or None,
        "rule": str(target.rule),
        # It is named, and its server could not be asked whether it exists.
        "unchecked": unchecked
        and {"code": unchecked.code, "message": unchecked.message[:LONGEST_MESSAGE]},
    }
    return {name: value for name, value in shown.items() if value is not None}
