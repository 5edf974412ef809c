"""What a login may do in a database, by read-only queries; listing finds also what the login may not use."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from engine.model.credential import Credential
from engine.model.server import Server
from engine.targets.discovery import UNREADABLE, Discovery, name_in
from engine.targets.discovery import Q as D
from engine.targets.member_listing import ListedDatabase
from muster.core.enumeration import NOT_GRANTED, left_out
from muster.core.errors import Unavailable
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


class SessionRow(msgspec.Struct, frozen=True):
    server_version: int
    username: str
    standby: bool
    creates_schemas: bool
    tls: str | None


class RoleRow(msgspec.Struct, frozen=True):
    name: str | None
    present: bool
    granted: bool | None
    has_schema: bool | None
    uses_schema: bool | None


class GuardRow(msgspec.Struct, frozen=True):
    uses: bool
    creates: bool
    writes: bool


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
                ListedDatabase(name_in(row), reason)
                if (reason := left_out(dict(row), self._provider_databases)) != NOT_GRANTED
                or row["name"] in control
                else ListedDatabase(name_in(row))
                for row in rows
            ]

    async def schemas(
        self, server: Server, database: str, pattern: str, credential: Credential
    ) -> list[str]:
        async with self._session(server, database, credential) as connection:
            rows = await connection.fetch(Q.schemas, pattern)
            return [name_in(row) for row in rows]

    async def rights(
        self, server: Server, database: str | None, credential: Credential, needs: Needs
    ) -> Rights:
        name = database or server.maintenance_database
        async with self._session(server, name, credential) as connection:
            session = await connection.fetchrow(Q.session)
            roles = await connection.fetch(Q.roles, list(needs.roles), needs.schema)
            guard, faults = None, []
            if needs.guarded:
                guard = await connection.fetchrow(Q.guard)
                faults = await connection.fetch(T.guard_faults)
        return Rights(
            _checked(session, SessionRow),
            [_checked(row, RoleRow) for row in roles],
            _checked(guard, GuardRow) if guard else None,
            tuple(str(row["fault"]) for row in faults),
        )


def _checked(row: Any, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """A server may answer anything."""
    try:
        return msgspec.structs.asdict(msgspec.convert(dict(row or ()), kind))
    except msgspec.ValidationError as error:
        raise Unavailable(f"{UNREADABLE}: {error}.", code="TargetUnreachable") from None
