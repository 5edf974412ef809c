"""What a host must know to run a task: steps, servers and secrets, read once and kept."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from engine.db.control_connection import ControlConnection
from engine.model.task import Served, Step, TargetServer, Task, VersionedCredential
from muster.core.clock import Clock
from muster.core.errors import NotFound
from muster.core.sql import Queries

Q = Queries("engine.db.queries", "executions.sql")
T = TypeVar("T")

FRESH = 5.0  # seconds that a server is believed to be as it was
MOST = 1000  # of each kind


class CachedServer(NamedTuple):
    """A server as it was."""

    at: float
    directory: int  # its revision
    identity: UUID
    server: TargetServer


class DefinitionCache:
    def __init__(self, line: ControlConnection, clock: Clock) -> None:
        self._line = line
        self._clock = clock
        self._steps: ReadThroughCache[Step] = ReadThroughCache()
        self._servers: ReadThroughCache[CachedServer] = ReadThroughCache()
        self._secrets: ReadThroughCache[VersionedCredential] = ReadThroughCache()

    def known_step(self, task: Task) -> Step | None:
        return self._steps.known((task.job_id, task.job_version, task.step_id))

    def known(self, task: Task) -> tuple[UUID, TargetServer, VersionedCredential] | None:
        """What `server` and `credential` would answer, if nothing has to be read for it."""
        seen = self._servers.known(task.server_id)
        if seen is None or self._is_old(seen, task):
            return None
        who = self._secrets.known((task.credential_id, task.credential_version))
        return None if who is None else (seen.identity, seen.server, who)

    def _is_old(self, seen: CachedServer, task: Task) -> bool:
        """The task knows of a later directory, or nobody has looked for a while."""
        return seen.directory < task.directory or self._clock.monotonic() - seen.at > FRESH

    async def step(self, task: Task) -> Step:
        key = task.job_id, task.job_version, task.step_id

        async def read() -> Step:
            text = await self._line.value(Q.step_document, *key)
            step = msgspec.json.decode(text, type=Step)
            await step.prepare()
            return step

        return await self._steps.get(key, read)

    async def server(self, task: Task) -> tuple[UUID, TargetServer]:
        """And the identity of the control database, to which sealed secrets are bound."""
        id = task.server_id

        async def read() -> CachedServer:
            text = await self._line.value(Q.servers, [id])
            served = msgspec.json.decode(text, type=Served)
            if not served.servers:
                raise NotFound(
                    f"The server '{task.server_name}' left the directory.",
                    code="InvalidTargetServer",
                )
            now = self._clock.monotonic()
            return CachedServer(now, served.revision, served.identity, served.servers[0])

        seen = await self._servers.get(id, read)
        if self._is_old(seen, task):
            self._servers.drop(id)
            seen = await self._servers.get(id, read)
        return seen.identity, seen.server

    async def credential(self, task: Task) -> VersionedCredential:
        id = task.credential_id
        if id is None:
            raise NotFound(
                "Nobody is named to log in here: name a credential in the step or in the target group,"
                " a jobCredential on the server, or a defaultCredential on the account.",
                code="CredentialMissing",
            )

        async def read() -> VersionedCredential:
            rows = await self._line.fetch(Q.secrets, [id])
            if not rows:
                raise NotFound("The credential is gone.", code="CredentialMissing")
            return VersionedCredential.of(dict(rows[0]))

        return await self._secrets.get((id, task.credential_version), read)


class ReadThroughCache(Generic[T]):
    """Read once, however many ask at the same time; what nobody asked for longest goes."""

    def __init__(self) -> None:
        self._reading: OrderedDict[Hashable, asyncio.Future[Any]] = OrderedDict()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        found = self._reading.get(key)
        if found is None:
            found = self._reading[key] = asyncio.ensure_future(read())
            while len(self._reading) > MOST:
                self._reading.popitem(last=False)
        else:
            self._reading.move_to_end(key)
        try:
            return await asyncio.shield(found)
        except BaseException:
            if found.done() and self._reading.get(key) is found:
                del self._reading[key]  # a failure is not kept
            raise

    def known(self, key: Hashable) -> T | None:
        found = self._reading.get(key)
        if found is None or not found.done() or found.cancelled() or found.exception():
            return None
        self._reading.move_to_end(key)
        known: T = found.result()
        return known

    def drop(self, key: Hashable) -> None:
        self._reading.pop(key, None)
