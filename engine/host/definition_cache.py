"""A host's cache of steps, servers and credentials."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from engine.attempt.output_writer import OutputPlace
from engine.db.control_connection import ControlConnection
from engine.model.credential import VersionedCredential
from engine.model.server import ServerLookup, TargetServer
from engine.model.step import Step
from engine.model.task import Task
from muster.core.clock import Clock
from muster.core.errors import NotFound
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "executions.sql")
T = TypeVar("T")

SERVER_MAX_AGE = 5.0  # seconds
MAX_ENTRIES = 1000  # of each kind


class CachedServer(NamedTuple):
    read_at: float
    directory: int  # its revision
    identity: UUID
    server: TargetServer


class DefinitionCache:
    def __init__(self, connection: ControlConnection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self._steps: ReadThroughCache[Step] = ReadThroughCache()
        self._servers: ReadThroughCache[CachedServer] = ReadThroughCache()
        self._credentials: ReadThroughCache[VersionedCredential] = ReadThroughCache()

    def cached_step(self, task: Task) -> Step | None:
        return self._steps.cached(task.definition_key)

    def cached_login(self, task: Task) -> tuple[UUID, TargetServer, VersionedCredential] | None:
        """The results of `server` and `credential`, if both are cached."""
        entry = self._servers.cached(task.server_id)
        if entry is None or self._is_outdated(entry, task):
            return None
        credential = self._credentials.cached((task.credential_id, task.credential_version))
        return None if credential is None else (entry.identity, entry.server, credential)

    def _is_outdated(self, entry: CachedServer, task: Task) -> bool:
        """The task was fetched with a later directory, or the entry is too old."""
        return (
            entry.directory < task.directory
            or self._clock.monotonic() - entry.read_at > SERVER_MAX_AGE
        )

    async def step(self, task: Task) -> Step:
        async def read() -> Step:
            text = await self._connection.value(Q.step_document, *task.step_key)
            step = msgspec.json.decode(text, type=Step)
            if task.has_own_options:
                step = step.with_overrides(task.overrides)
            await step.prepare()
            return step

        return await self._steps.get(task.definition_key, read)

    async def server(self, task: Task) -> tuple[UUID, TargetServer]:
        """With the identity of the control database, to which sealed secrets are bound."""
        id = task.server_id

        async def read() -> CachedServer:
            text = await self._connection.value(Q.servers, [id])
            lookup = msgspec.json.decode(text, type=ServerLookup)
            if not lookup.servers:
                raise NotFound(
                    f"The server '{task.server_name}' is no longer in the directory.",
                    code="InvalidTargetServer",
                )
            now = self._clock.monotonic()
            return CachedServer(now, lookup.revision, lookup.identity, lookup.servers[0])

        entry = await self._servers.get(id, read)
        if self._is_outdated(entry, task):
            self._servers.drop(id)
            entry = await self._servers.get(id, read)
        return entry.identity, entry.server

    async def output_place(self, task: Task) -> OutputPlace:
        """Read for each attempt: the server and the credential may have changed since the last one."""
        text = await self._connection.value(Q.output_place, *task.target_key)
        return msgspec.json.decode(text, type=OutputPlace)

    async def credential(self, task: Task) -> VersionedCredential:
        id = task.credential_id
        if id is None:
            raise NotFound(
                "No credential is configured for this target: name a credential in the step, the query or the target"
                " group, a jobCredential on the server, or a defaultCredential on the account.",
                code="CredentialMissing",
            )

        async def read() -> VersionedCredential:
            rows = await self._connection.fetch(Q.secrets, [id])
            if not rows:
                raise NotFound("The credential does not exist any more.", code="CredentialMissing")
            return VersionedCredential.of(dict(rows[0]))

        return await self._credentials.get((id, task.credential_version), read)


class ReadThroughCache(Generic[T]):
    """Concurrent requests share one read; the least recently used entry is dropped."""

    def __init__(self) -> None:
        self._entries: OrderedDict[Hashable, asyncio.Future[Any]] = OrderedDict()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        reading = self._entries.get(key)
        if reading is None:
            reading = self._entries[key] = asyncio.ensure_future(read())
            while len(self._entries) > MAX_ENTRIES:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(key)
        try:
            return await asyncio.shield(reading)
        except BaseException:
            if reading.done() and self._entries.get(key) is reading:
                del self._entries[key]  # a failure is not kept
            raise

    def cached(self, key: Hashable) -> T | None:
        reading = self._entries.get(key)
        if reading is None or not reading.done() or reading.cancelled() or reading.exception():
            return None
        self._entries.move_to_end(key)
        value: T = reading.result()
        return value

    def drop(self, key: Hashable) -> None:
        self._entries.pop(key, None)
