"""The launchers' side of the queue: registration, claims, and the workloads of a launcher."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from fsm.launch.protocol import Kind, Priority
from fsm.launch.workload import Workload, workload_of
from muster.core import wake
from muster.core.db import Connection, Database
from muster.core.errors import Conflict, NotFound
from muster.core.settings import Settings
from muster.core.sql import Queries

Q = Queries("fsm.launch.sql", "queue.sql", "launcher.sql")

CHANNEL = "workload"


@dataclass(frozen=True, kw_only=True)
class Registration:
    name: str
    launch_group: str
    home: UUID
    enabled: bool
    capacity: dict[str, Any]
    version: str
    registered_at: datetime
    heartbeat_at: datetime


class Waiting(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One queue: how many wait, visible or not, and since when."""

    launch_group: str
    priority: Priority
    queued: int
    oldest: datetime


def caps(settings: Settings) -> dict[str, int]:
    """How many of a kind may be under way at once, over all launchers; 0 = no limit."""
    return {
        Kind.ENGINE: settings.max_running_engine,
        Kind.HOST: settings.max_running_host,
        Kind.COMMAND: settings.max_running_command,
    }


async def register(
    db: Connection | Database,
    settings: Settings,
    *,
    name: str,
    group: str,
    home: UUID,
    capacity: Mapping[str, Any],
    version: str,
) -> Registration:
    """The first call and every heartbeat; Conflict while another one lives under this name."""
    row = await db.fetchrow(
        Q.register, name, group, home, dict(capacity), version, settings.workload_silent
    )
    if row is None:
        raise Conflict(
            f"A launcher named '{name}' already runs somewhere else: "
            "choose another MUSTER_LAUNCHER_NAME."
        )
    return Registration(**dict(row))


async def other_versions(
    db: Connection | Database, settings: Settings, group: str, version: str | None
) -> bool:
    """Whether what a program of this version could not do may be done by another one."""
    exists: bool = await db.fetchval(Q.other_versions, group, settings.workload_silent, version)
    return exists


async def enable(tx: Connection, name: str, *, enabled: bool) -> Registration:
    """Disabled, it starts nothing new; what runs goes on."""
    row = await tx.fetchrow(Q.enable_launcher, name, enabled)
    if row is None:
        raise NotFound(f"No launcher is named '{name}'.")
    await wake.notify_in(tx, CHANNEL)
    return Registration(**dict(row))


async def poll(
    tx: Connection, settings: Settings, *, group: str, priority: Priority, quantity: int
) -> list[Workload]:
    """Offers, hidden from other pollers for a while; only a claim makes them anybody's."""
    window = settings.workload_redelivery
    return [workload_of(row) for row in await tx.fetch(Q.poll, group, priority, quantity, window)]


async def take(
    tx: Connection, settings: Settings, *, launcher: str, group: str, priority: Priority
) -> Workload | None:
    """Poll and claim in one, inside all limits but those of the machine itself."""
    await tx.execute(Q.lock_taking)
    row = await tx.fetchrow(
        Q.take,
        launcher,
        group,
        priority,
        settings.launcher_parallelism,
        settings.workload_mutex_wait,
        caps(settings),
        settings.workload_start_limit,
    )
    return workload_of(row) if row else None


async def claim(
    tx: Connection, settings: Settings, id: UUID, *, launcher: str, group: str
) -> Workload | None:
    """None when it is another's, over, or a limit is reached: not an error, only bad luck."""
    await tx.execute(Q.lock_taking)
    limit = settings.workload_start_limit
    row = await tx.fetchrow(Q.claim, id, launcher, group, limit, caps(settings))
    return workload_of(row) if row else None


async def arm(tx: Connection, id: UUID, *, launcher: str, digest: bytes) -> Workload | None:
    """The intent to start, recorded before the start; None: it is no longer ours to start."""
    row = await tx.fetchrow(Q.arm, id, launcher, digest)
    return workload_of(row) if row else None


async def release(tx: Connection, settings: Settings, id: UUID, *, launcher: str) -> None:
    """Claimed and not started: another launcher may take it."""
    await tx.execute(Q.release, id, launcher, settings.workload_claim_limit)
    await wake.notify_in(tx, CHANNEL)


async def mine(db: Connection | Database, launcher: str) -> list[Workload]:
    return [workload_of(row) for row in await db.fetch(Q.mine, launcher)]


async def depth(db: Connection | Database, group: str, priority: Priority | None = None) -> int:
    """What a poll could get now."""
    count: int = await db.fetchval(Q.depth, group, priority)
    return count


async def stats(db: Connection | Database) -> list[Waiting]:
    return [
        Waiting(
            launch_group=row["launch_group"],
            priority=Priority(row["priority"]),
            queued=row["queued"],
            oldest=row["oldest"],
        )
        for row in await db.fetch(Q.stats)
    ]


async def clean(db: Connection | Database, settings: Settings, limit: int = 1000) -> int:
    """How many old rows were forgotten."""
    count: int = await db.fetchval(Q.clean, settings.workload_kept, limit)
    return count
