"""Maintenance of the control database: retention, partitions, statistics.

Each duty returns a sentence about what it did, or None when there was nothing to do.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from engine.db.control_db import ControlDatabase
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "maintenance.sql")

Duty = Callable[[], Awaitable[str | None]]
RETENTION = 45  # days, for jobs without a retention of their own


class Maintenance:
    """Uses one session at a time, so that the heartbeat does not wait for a session."""

    def __init__(self, store: ControlDatabase) -> None:
        self._store = store
        self._lock = asyncio.Lock()

    async def prune_history(self) -> str | None:
        days = runs = 0
        more = True
        while more:
            batch = await self._fetch(Q.prune_history, RETENTION)
            days, runs, more = days + batch["days"], runs + batch["runs"], batch["more"]
        return (
            f"{_count(days, 'day')} dropped, {_count(runs, 'run')} deleted."
            if runs + days
            else None
        )

    async def create_partitions(self) -> str | None:
        (days,) = await self._fetch(Q.make_room)
        return f"Room for the runs of {' and '.join(map(str, days))} made." if days else None

    async def analyze_tables(self) -> str | None:
        tables: list[str] = []
        while table := (await self._fetch(Q.analyze, tables))[0]:
            tables.append(table)
        return f"{_count(len(tables), 'table')} counted." if tables else None

    async def _fetch(self, query: str, *args: Any) -> Any:
        async with self._lock, self._store.calling() as tx:
            return await tx.fetchrow(query, self._store.epoch, *args)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
