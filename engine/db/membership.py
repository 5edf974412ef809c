"""Epochs, heartbeats and registrations of the engine and its hosts in the control database."""

import os
import socket
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from engine.db.control_db import ControlDatabase, Q
from engine.process.exit_codes import Incompatible
from muster.core.db import Connection
from muster.core.errors import Unavailable
from muster.core.version import VERSION

OLDEST_SCHEMA = 15  # the oldest schema that has all that the engine's queries name


@dataclass(frozen=True)
class InstanceState:
    """The state of the account that the engine must follow."""

    paused: bool
    draining: bool
    schema_version: int
    directory_revision: int


@dataclass(frozen=True)
class HostRow:
    host_id: UUID
    host_name: str
    pid: int
    slots: int
    state: str
    heartbeat_at: datetime


@dataclass(frozen=True)
class HostState:
    """The state that a host must follow, and its epoch."""

    adopted_epoch: int
    current_epoch: int
    paused: bool
    draining: bool
    state: str
    slots: int


@dataclass(frozen=True)
class MembershipSnapshot:
    """State of the account and its hosts, read in one transaction."""

    beat: InstanceState
    hosts: dict[UUID, HostRow]


async def acquire_leadership(store: ControlDatabase, workload: UUID) -> bool:
    """False: a newer epoch is current. Adopts all hosts in the same transaction, so that each always has an epoch."""
    async with store.calling() as tx:
        if not await tx.fetchval(
            Q.install_epoch, store.epoch, workload, socket.gethostname(), VERSION
        ):
            return False
        beat = await _beat(tx, store.epoch)
        if beat.schema_version < OLDEST_SCHEMA:
            raise Incompatible(
                f"engine {VERSION} needs schema {OLDEST_SCHEMA} or newer, but the schema is {beat.schema_version}"
            )
        await _adopt(tx, store)
        return True


async def heartbeat(store: ControlDatabase) -> InstanceState:
    async with store.calling() as tx:
        return await _beat(tx, store.epoch)


async def hosts(store: ControlDatabase) -> dict[UUID, HostRow]:
    """All hosts that have not ended; adopts the new ones."""
    async with store.calling() as tx:
        return await _adopt(tx, store)


async def look(store: ControlDatabase) -> MembershipSnapshot:
    async with store.calling() as tx:
        return MembershipSnapshot(await _beat(tx, store.epoch), await _adopt(tx, store))


async def register(store: ControlDatabase, host: UUID, slots: int) -> None:
    async with store.calling() as tx:
        name, pid = socket.gethostname(), os.getpid()
        await tx.execute(Q.register_host, host, store.epoch, name, pid, slots)


async def host_heartbeat(store: ControlDatabase, host: UUID, running: int) -> HostState:
    async with store.calling() as tx:
        return HostState(**_one(await tx.fetchrow(Q.host_heartbeat, host, running)))


async def drain_hosts(store: ControlDatabase) -> None:
    """Called by the engine when it ends for good."""
    async with store.calling() as tx:
        await tx.execute(Q.drain_hosts, store.epoch)


async def leave(store: ControlDatabase, host: UUID) -> None:
    """Called by the host: it finishes its tasks and gets no new ones."""
    async with store.calling() as tx:
        await tx.execute(Q.leave_host, host)


async def end_host(store: ControlDatabase, host: UUID) -> None:
    """Called by the host, in any epoch."""
    async with store.calling() as tx:
        await tx.execute(Q.end_host, host)


async def end_lost_host(store: ControlDatabase, host: UUID) -> None:
    """Called by the engine, for a host that must have ended by itself."""
    async with store.writing() as tx:
        await tx.execute(Q.end_host, host)


async def _beat(tx: Connection, epoch: int) -> InstanceState:
    return InstanceState(**_one(await tx.fetchrow(Q.heartbeat, epoch)))


async def _adopt(tx: Connection, store: ControlDatabase) -> dict[UUID, HostRow]:
    rows = await tx.fetch(Q.adopt_hosts, store.epoch, store.slots)
    return {row["host_id"]: HostRow(**dict(row)) for row in rows}


def _one(row: Any) -> dict[str, Any]:
    if row is None:
        raise Unavailable("The control database returned no row.")
    return dict(row)
