"""The listing stage of target resolution: the targets of one member of a target group.

A named database is a target whether it exists or not, so that it fails alone; everything else is listed by
its server. A server that can't be listed is one target of its own, and so is a database whose schemas
can't be listed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from engine.model.credential import Credential
from engine.model.group_document import Document, Member
from engine.model.server import Server
from engine.model.task import UNLISTED
from engine.targets.resolution import SkippedDatabase, Target
from engine.targets.server_retry import ServerRetry
from engine.targets.sql_like import LikePattern, database_pattern
from muster.core.enumeration import LABELS_DIFFER, NOT_INCLUDED
from muster.core.errors import Fault, InvalidRequest, NotFound

T = TypeVar("T")
AdminLock = Callable[[str], asyncio.Lock]  # by server id: one admin session at a time

MAX_PARALLEL_SERVERS = 32  # listed at once
MAX_LABELS = 64  # of a row, as of a resource
MAX_LABEL_LENGTH = 256  # characters
MAX_NAME_LENGTH = 63  # bytes of a database or schema
NO_LABELS = frozenset({"server_name", "database_name", "schema_name", UNLISTED})


@dataclass(frozen=True)
class ListedDatabase:
    """A database as its server lists it."""

    name: str
    reason: str | None = None  # why it is no target


class Lister(Protocol):
    """Queries servers; a Fault says why a server could not be queried."""

    admin_lock: AdminLock

    async def databases(self, server: Server, credential: Credential) -> list[ListedDatabase]: ...

    async def schemas(
        self, server: Server, database: str, pattern: str, credential: Credential
    ) -> list[str]: ...

    async def rows(
        self, server: Server, database: str, member: Member, credential: Credential
    ) -> list[dict[str, Any]]: ...


class MemberListing:
    def __init__(
        self,
        document: Document,
        lister: Lister,
        default_credential: Credential | None,
        retry: ServerRetry,
    ) -> None:
        self._document = document
        self._lister = lister
        self._default_credential = default_credential  # where the document names none
        self._retry = retry
        self._parallel = asyncio.Semaphore(MAX_PARALLEL_SERVERS)
        self._lists: dict[tuple[str, str], asyncio.Task[list[ListedDatabase]]] = {}
        # By server id and database
        self.skipped: dict[tuple[str, str], SkippedDatabase] = {}
        self.unselected: dict[tuple[str, str], SkippedDatabase] = {}

    def cancel(self) -> None:
        for task in self._lists.values():
            task.cancel()

    def server(self, member: Member) -> Server:
        server = self._document.server_of(member)
        if server is None:
            name = member.server_name or ""
            message = (
                f"The server '{name}' is not in the directory."
                if self._document.server(name) is None
                else f"'{name}' is the name of another server now. To use that one, write the member again."
            )
            raise NotFound(message, code="InvalidTargetServer")
        return server

    async def targets(self, member: Member) -> list[Target]:
        server = self.server(member)
        try:
            targets = await self._targets(member, server)
        except Fault as fault:
            return [_target(member, server, None, error=fault)]
        return self._selected(member, targets)

    def _selected(self, member: Member, targets: list[Target]) -> list[Target]:
        selector = member.selector
        if selector is None:
            return targets
        matching = []
        for target in targets:
            if selector.matches(target.labels):
                matching.append(target)
            else:
                self._skip(target.server, target.database or "", LABELS_DIFFER, member)
        return matching

    def _skip(self, server: Server, database: str, reason: str, member: Member) -> None:
        skipped = SkippedDatabase(server.name, database, reason, member.target_id)
        where = self.unselected if reason == LABELS_DIFFER else self.skipped
        where.setdefault((server.server_id.lower(), database), skipped)

    async def _targets(self, member: Member, server: Server) -> list[Target]:
        match member.type:
            case "SqlDatabase" if (pattern := database_pattern(member.database_name)) is not None:
                names = await self._databases(member, server, pattern)
                return [_target(member, server, name) for name in names]
            case "SqlDatabase":
                return [_target(member, server, member.database_name, named=True)]
            case "SqlServer":
                names = await self._databases(member, server)
                return [_target(member, server, name) for name in names]
            case "SqlElasticPool":
                pool = (member.elastic_pool_name or "").lower()
                names = await self._databases(member, server)
                pooled = [name for name in names if (server.pool_of(name) or "").lower() == pool]
                return [_target(member, server, name) for name in pooled]
            case "SqlSchema":
                return await self._schemas(member, server)
            case _:
                return await self._rows(member, server)

    async def _schemas(self, member: Member, server: Server) -> list[Target]:
        name, pattern = member.database_name, database_pattern(member.database_name)
        is_listed = name is None or pattern is not None
        names = await self._databases(member, server, pattern) if is_listed else [name or ""]
        credential = self._credential(member, server)
        schema_pattern = member.schema_pattern or "%"
        targets: list[Target] = []
        timeout: Fault | None = None  # after one database timed out, the others are not queried
        for name in names:
            try:
                if timeout is not None:
                    raise timeout
                query = partial(self._lister.schemas, server, name, schema_pattern, credential)
                schemas = await self._query(server, query)
                targets += [_target(member, server, name, schema) for schema in schemas]
            except Fault as fault:
                timeout = fault if fault.code == "TargetTimeout" else None
                targets.append(_target(member, server, name, error=fault))
        return targets

    async def _rows(self, member: Member, server: Server) -> list[Target]:
        """Rows with server_name, database_name and perhaps schema_name; other columns are labels."""
        database = member.database_name or server.maintenance_database
        credential = self._credential(member, server)
        query = partial(self._lister.rows, server, database, member, credential)
        return [self._row_target(member, row) for row in await self._query(server, query)]

    def _row_target(self, member: Member, row: dict[str, Any]) -> Target:
        server = self._document.server(str(row["server_name"]))
        if server is None:
            raise NotFound(
                f"The query names the server '{str(row['server_name'])[:100]}', which is not in the directory.",
                code="InvalidTargetServer",
            )
        labels = {
            name: str(value)
            for name, value in row.items()
            if name not in NO_LABELS and value is not None
        }
        if not row["database_name"]:
            raise InvalidRequest("A row names no database.", code="InvalidTargetQuery")
        schema = row.get("schema_name")
        _refuse_large(labels, str(row["database_name"]), str(schema or ""))
        return _target(
            member,
            server,
            str(row["database_name"]),
            None if schema is None else str(schema),
            labels,
            named=True,
        )

    async def _databases(
        self, member: Member, server: Server, pattern: LikePattern | None = None
    ) -> list[str]:
        """The databases that match and can be targets; the others that match are skipped."""
        databases = await self.databases(member, server)
        matches = [each for each in databases if pattern is None or pattern.matches(each.name)]
        for each in matches:
            if each.reason is not None:
                self._skip(server, each.name, each.reason, member)
        return [each.name for each in matches if each.reason is None]

    async def databases(self, member: Member, server: Server) -> list[ListedDatabase]:
        """Lists each server once for each credential, however many members need the list."""
        credential = self._credential(member, server)
        key = (server.server_id, credential.name)
        if key not in self._lists:
            query = partial(self._lister.databases, server, credential)
            self._lists[key] = asyncio.create_task(self._query(server, query))
        return await self._lists[key]

    def others(self) -> Iterator[tuple[tuple[str, str], SkippedDatabase]]:
        """Every database of the servers that were listed, as if no member included it."""
        servers = {server.server_id: server for server in self._document.directory.servers}
        for (server_id, _), task in self._lists.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                for each in task.result():
                    reason = each.reason or NOT_INCLUDED
                    skipped = SkippedDatabase(servers[server_id].name, each.name, reason, None)
                    yield (server_id.lower(), each.name), skipped

    async def _query(self, server: Server, query: Callable[[], Awaitable[T]]) -> T:
        """The admin lock and the semaphore are free during the pause before a retry."""

        async def attempt() -> T:
            async with self._lister.admin_lock(server.server_id), self._parallel:
                return await query()

        return await self._retry.run(server.server_id, attempt)

    def _credential(self, member: Member, server: Server) -> Credential:
        named = self._document.credential(
            member.refresh_credential_id, member.credential_id, name=server.job_credential
        )
        credential = named or self._default_credential
        if credential is None:
            raise NotFound(
                f"No credential may list the databases of '{server.name}': name a credential in the step"
                " or the query, a refreshCredential in the target group, a jobCredential on the server, or a"
                " defaultCredential on the account.",
                code="CredentialMissing",
            )
        return credential


def _target(
    member: Member,
    server: Server,
    database: str | None,
    schema: str | None = None,
    labels: dict[str, str] | None = None,
    error: Fault | None = None,
    *,
    named: bool = False,
) -> Target:
    own_labels = server.labels_of(database)
    own_labels.pop(UNLISTED, None)
    return Target(
        server=server,
        database=database,
        schema=schema,
        labels=own_labels | (labels or {}),
        credential_id=member.credential_id,
        rule=member.target_id,
        error=error,
        named=named,
    )


def _refuse_large(labels: dict[str, str], *names: str) -> None:
    """Each label and name of a row goes into the snapshot of every run."""
    problem = None
    if len(labels) > MAX_LABELS:
        problem = f"A row has more than {MAX_LABELS} labels."
    elif long := [name for name, value in labels.items() if len(value) > MAX_LABEL_LENGTH]:
        problem = f"The label '{long[0]}' of a row has more than {MAX_LABEL_LENGTH} characters."
    elif any(len(name.encode()) > MAX_NAME_LENGTH for name in names):
        problem = f"A row names a database or schema with more than {MAX_NAME_LENGTH} bytes."
    if problem:
        raise InvalidRequest(problem, code="InvalidTargetQuery")
