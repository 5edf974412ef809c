"""Writes below an account: begun and settled here, done in its control database.

The metadata database says what was begun, the journal of the control database says what took effect.
A process that dies between the two leaves a command open; the sweeper settles it by asking the journal.
"""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from fsm import control_database
from fsm.context import Context, Services
from fsm.store import Q as M
from fsm.store import machine_of, resource_of
from muster.core import telemetry
from muster.core.db import Connection, Database, Row
from muster.core.errors import Conflict, Fault, NotFound
from muster.core.sql import Queries
from nodeagent.items import ReadJournal

Q = Queries("fsm.sql", "command.sql")
log = telemetry.get(__name__)

ABANDONED = timedelta(minutes=1)  # longer than any command is under way
BATCH = 1000
LOST = {"ControlDatabaseNotFound", "ControlSchemaMissing"}  # no journal is left to ask


async def begin(
    tx: Connection,
    *,
    command_id: UUID,
    account_uid: UUID,
    request_key: str | None,
    body_digest: bytes,
) -> bool:
    """True: it begins now. False: it was begun before, and its end may be known already."""
    if request_key is not None:
        await tx.execute(Q.lock_key, request_key)
        first = await tx.fetchrow(Q.command_of_key, request_key)
        if first is not None and bytes(first["body_digest"]) != body_digest:
            raise Conflict(
                "The idempotency key was used with another body.", code="IdempotencyKeyMismatch"
            )
    begun = await tx.fetchval(Q.begin_command, command_id, account_uid, request_key, body_digest)
    return begun is not None


async def settle(
    db: Database, command_id: UUID, *, succeeded: bool, detail: Mapping[str, Any] | None = None
) -> None:
    """Once; the same statement writes the audit event."""
    status = "Succeeded" if succeeded else "Failed"
    await db.execute(Q.settle_command, command_id, status, dict(detail or {}))


async def run(services: Services, stop: asyncio.Event) -> None:
    while not stop.is_set():
        try:
            await sweep(services)
        except Fault as error:
            log.warning("open commands can't be settled now", why=error.context or error.message)
        await services.clock.sleep_or(stop, services.settings.sweep)


async def sweep(services: Services, older_than: timedelta = ABANDONED) -> None:
    rows = await services.db.fetch(Q.open_commands, older_than, BATCH)
    by_account = sorted(rows, key=lambda row: row["account_uid"])
    for uid, commands in groupby(by_account, key=lambda row: row["account_uid"]):
        try:
            await _settle_all(services, uid, list(commands))
        except Fault as error:
            log.warning("an account's journal can't be asked", account=uid, why=error.message)


async def _settle_all(services: Services, account_uid: UUID, commands: list[Row]) -> None:
    where = await _control(services, account_uid)
    for row in commands:
        detail = {"settledBy": "journal"}
        try:
            took_effect = where is not None and await _took_effect(where, row["command_id"])
        except NotFound as lost:
            if lost.code not in LOST:
                raise
            took_effect = False
            detail["code"] = lost.code
        await settle(services.db, row["command_id"], succeeded=took_effect, detail=detail)


async def _took_effect(where: control_database.Control, command_id: UUID) -> bool:
    recorded: bool = (await where.operate(ReadJournal(command_id=command_id))).known
    return recorded


async def _control(services: Services, account_uid: UUID) -> control_database.Control | None:
    """None: the account is gone, and its control database with it."""
    machine = await services.db.fetchrow(M.get_machine, account_uid)
    row = await services.db.fetchrow(M.get_by_uid, account_uid)
    if machine is None or row is None:
        return None
    context = Context(services=services, machine=machine_of(machine), resource=resource_of(row))
    try:
        return await control_database.of(context)
    except NotFound:
        return None
