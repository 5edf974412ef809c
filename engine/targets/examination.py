"""What a login may do in a database, by read-only queries; listing finds also what the login may not use."""

from dataclasses import dataclass, field
from typing import Any

from engine.model.credential import Credential
from engine.model.server import Server
from engine.targets.discovery import Discovery
from engine.targets.discovery import Q as D
from engine.targets.member_listing import ListedDatabase
from muster.core.enumeration import NOT_GRANTED, left_out
from muster.core.sql import Queries

Q = Queries("engine.targets", "rights.sql")
T = Queries("engine.access", "target.sql")

MISSING = "missing"  # among the faults of the guard


@dataclass(frozen=True)
class Needs:
    """What steps need of one login at one target."""

    schema: str | None = None
    roles: tuple[str | None, ...] = (None,)  # that scripts run as; None: the login itself
    guarded: bool = False
    writes: bool = False


@dataclass(frozen=True)
class Rights:
    """The answers of a target; a row has the columns of its query in rights.sql."""

    session: dict[str, Any]
    roles: list[dict[str, Any]] = field(default_factory=list)
    guard: dict[str, Any] | None = None  # None: no such schema
    guard_faults: tuple[str, ...] = ()


class Examination(Discovery):
    """A target that the login can't use is a finding: it must not be left out as it is for a run."""

    async def databases(self, server: Server, credential: Credential) -> list[ListedDatabase]:
        """The right to connect to a database that holds a job account is not missing."""
        name = server.maintenance_database
        async with self._session(server, name, credential) as connection:
            rows = await connection.fetch(D.databases)
            control = {row["name"] for row in await connection.fetch(Q.control_databases)}
        return [
            ListedDatabase(row["name"], reason)
            if (reason := left_out(dict(row), self._provider_databases)) != NOT_GRANTED
            or row["name"] in control
            else ListedDatabase(row["name"])
            for row in rows
        ]

    async def schemas(
        self, server: Server, database: str, pattern: str, credential: Credential
    ) -> list[str]:
        async with self._session(server, database, credential) as connection:
            rows = await connection.fetch(Q.schemas, pattern)
        return [row["name"] for row in rows]

    async def rights(
        self, server: Server, database: str | None, credential: Credential, needs: Needs
    ) -> Rights:
        name = database or server.maintenance_database
        async with self._session(server, name, credential) as connection:
            session = dict(await connection.fetchrow(Q.session) or {})
            roles = await connection.fetch(Q.roles, list(needs.roles), needs.schema)
            guard, faults = None, []
            if needs.guarded:
                guard = await connection.fetchrow(Q.guard)
                faults = await connection.fetch(T.guard_faults)
        return Rights(
            session,
            [dict(row) for row in roles],
            dict(guard) if guard else None,
            tuple(row["fault"] for row in faults),
        )
