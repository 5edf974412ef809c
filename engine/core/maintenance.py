"""What Muster does for itself in the control database: forgets old runs, makes room for new ones, counts tables.

Each duty says in a sentence what it did, or None when there was nothing to do.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from engine.db.control_db import ControlDatabase
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "maintenance.sql")

Duty = Callable[[], Awaitable[str | None]]
RETENTION = 45  # days, for jobs that do not say how long they keep their runs


class Maintenance:
    """Uses one session at a time: the heartbeat must not wait for it."""

    def __init__(self, store: ControlDatabase) -> None:
        self._store = store
        self._one = asyncio.Lock()

    async def forget_history(self) -> str | None:
        days = runs = 0
        more = True
        while more:
            bite = await self._ask(Q.prune_history, RETENTION)
            days, runs, more = days + bite["days"], runs + bite["runs"], bite["more"]
        return (
            f"{_count(days, 'day')} dropped, {_count(runs, 'run')} deleted."
            if runs + days
            else None
        )

    async def make_room(self) -> str | None:
        (made,) = await self._ask(Q.make_room)
        return f"Room for the runs of {' and '.join(map(str, made))} made." if made else None

    async def count_tables(self) -> str | None:
        done: list[str] = []
        while table := (await self._ask(Q.analyze, done))[0]:
            done.append(table)
        return f"{_count(len(done), 'table')} counted." if done else None

    async def _ask(self, query: str, *args: Any) -> Any:
        async with self._one, self._store.calling() as tx:
            return await tx.fetchrow(query, self._store.epoch, *args)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
