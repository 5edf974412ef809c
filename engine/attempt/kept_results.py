"""The result sets that an outcome contains."""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import asyncpg

from engine.access.errors import CONNECTION_LOST
from engine.attempt.sql_text import literal
from engine.pgwire.result_set import ResultSet, digest, rows_of
from engine.pool.pooled_connection import PooledConnection
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

MAX_RESULT_SETS = 1_000
MAX_ROW_COUNT = 2**63 - 1
CHANGES = {"INSERT", "UPDATE", "DELETE", "MERGE", "COPY"}
TYPE_NAMES_TIMEOUT = 3.0  # seconds


class KeptResults:
    def __init__(self, session: PooledConnection) -> None:
        self.rows = 0  # returned or changed
        self.rows_affected: int | None = None
        self._session = session
        self._sets: list[ResultSet] = []

    def add(self, sets: Iterable[ResultSet], statement: int) -> None:
        for each in sets:
            each.statement = statement
            self.rows = min(self.rows + each.affected, MAX_ROW_COUNT)
            if each.tag.partition(" ")[0] in CHANGES and not each.copied_out:
                self.rows_affected = min((self.rows_affected or 0) + each.affected, MAX_ROW_COUNT)
            if len(self._sets) < MAX_RESULT_SETS:
                self._sets.append(each)

    def clear(self) -> None:
        self._sets.clear()
        self.rows = 0
        self.rows_affected = None

    @property
    def digest(self) -> str | None:
        return digest(self._sets) if self._sets else None

    async def as_json(self, max_rows: int) -> list[dict[str, Any]]:
        unnamed = set[int]().union(*(each.unnamed_types for each in self._sets))
        types = await self._type_names(unnamed) if unnamed else {}
        return [each.as_json(types, max_rows) for each in self._sets]

    async def _type_names(self, oids: set[int]) -> dict[int, str]:
        """Of types that are not built in; queried once per session."""
        session = self._session
        new = oids - session.types.keys()
        if new and not session.lost and not session.unusable:
            query = Q.type_names.replace("$1", literal(f"{{{','.join(map(str, new))}}}"))
            received = session.result_reader.received
            with contextlib.suppress(asyncpg.PostgresError, *CONNECTION_LOST, TimeoutError):
                async with asyncio.timeout(TYPE_NAMES_TIMEOUT):
                    rows = rows_of(await session.query(query), width=2)
                    session.types |= {oid: str(name) for oid, name, *_ in rows}
            session.result_reader.received = received
        return session.types
