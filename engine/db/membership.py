"""What an engine and its hosts say to the control database about themselves, and what they learn."""

import os
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.db.control_db import Q, Store
from engine.process.exit_codes import Incompatible
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.version import VERSION

OLDEST_SCHEMA = 11  # the oldest that has all that is asked of it here


@dataclass(frozen=True)
class Beat:
    """What the engine must obey."""

    paused: bool
    draining: bool
    schema_version: int
    directory_revision: int


@dataclass(frozen=True)
class Host:
    host_id: UUID
    host_name: str
    pid: int
    slots: int
    state: str
    heartbeat_at: datetime


@dataclass(frozen=True)
class HostBeat:
    """What a host must obey, and whose it is."""

    adopted_epoch: int
    current_epoch: int
    paused: bool
    draining: bool
    state: str
    slots: int


@dataclass(frozen=True)
class Look:
    """Everything that memory holds a copy of, read in one transaction."""

    beat: Beat
    hosts: dict[UUID, Host]


async def take_charge(store: Store, workload: UUID) -> bool:
    """False: a newer epoch is in charge. Adoption is part of it, so no host is ever between two epochs."""
    async with store.calling() as tx:
        if not await tx.fetchval(
            Q.install_epoch, store.epoch, workload, socket.gethostname(), VERSION
        ):
            return False
        beat = await _beat(tx, store.epoch)
        if beat.schema_version < OLDEST_SCHEMA:
            raise Incompatible(
                f"engine {VERSION} needs schema {OLDEST_SCHEMA} or newer and found {beat.schema_version}"
            )
        await _adopt(tx, store)
        return True


async def heartbeat(store: Store) -> Beat:
    async with store.calling() as tx:
        return await _beat(tx, store.epoch)


async def hosts(store: Store) -> dict[UUID, Host]:
    """All that have not ended; those that came since the last time are adopted by this."""
    async with store.calling() as tx:
        return await _adopt(tx, store)


async def look(store: Store) -> Look:
    async with store.calling() as tx:
        return Look(await _beat(tx, store.epoch), await _adopt(tx, store))


async def register(store: Store, host: UUID, slots: int) -> None:
    async with store.calling() as tx:
        name, pid = socket.gethostname(), os.getpid()
        await tx.execute(Q.register_host, host, store.epoch, name, pid, slots)


async def host_heartbeat(store: Store, host: UUID, running: int) -> HostBeat:
    async with store.calling() as tx:
        return HostBeat(**_one(await tx.fetchrow(Q.host_heartbeat, host, running)))


async def drain_hosts(store: Store) -> None:
    """By the engine in charge, when it goes for good."""
    async with store.calling() as tx:
        await tx.execute(Q.drain_hosts, store.epoch)


async def leave(store: Store, host: UUID) -> None:
    """By the host itself: it finishes what it runs and gets nothing new."""
    async with store.calling() as tx:
        await tx.execute(Q.leave_host, host)


async def end_host(store: Store, host: UUID) -> None:
    """By the host itself, whoever is in charge."""
    async with store.calling() as tx:
        await tx.execute(Q.end_host, host)


async def end_lost_host(store: Store, host: UUID) -> None:
    """By the engine in charge, for a host that must have ended itself."""
    async with store.writing() as tx:
        await tx.execute(Q.end_host, host)


async def _beat(tx: Connection, epoch: int) -> Beat:
    return Beat(**_one(await tx.fetchrow(Q.heartbeat, epoch)))


async def _adopt(tx: Connection, store: Store) -> dict[UUID, Host]:
    rows = await tx.fetch(Q.adopt_hosts, store.epoch, store.slots)
    return {row["host_id"]: Host(**dict(row)) for row in rows}


def _one(row: Any) -> dict[str, Any]:
    if row is None:
        raise Unavailable("The control database gave no answer.")
    return dict(row)
