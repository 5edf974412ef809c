"""The limit: bare asyncpg that says to targets what a host says for the same tasks, and nothing else.

What a host says is not repeated here: one attempt is run as a host runs it, alone or in a convoy, and listened to,
and the other tasks get the same texts with their own names in them.
"""

import asyncio
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from bench.fleet import PASSWORD, SLOTS, TARGET_SERVER, USER, Fleet
from engine.access.credentials import Credentials
from engine.attempt.session_setup import lock_key
from engine.model.server import TargetServer
from engine.model.task import Task
from engine.pool.pool import ConnectionPool
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.settings import Secret
from tests.support.attempts import TargetDatabase, a_step, a_task, overhear, settings
from tests.support.postgres import Role

PATIENCE = 10.0  # seconds
TIMEOUT = 43_200  # seconds, of a step that says nothing about it
LAST = "discard all"  # cleans the session for the next task
Said = tuple[str, ...]  # the messages of one task, each answered before the next
Say = Callable[[asyncpg.Connection, Said], Awaitable[None]]


async def said(
    fleet: Fleet,
    script: str,
    places: Iterable[tuple[str, str | None]],
    *,
    together: bool = False,
) -> list[Said]:
    """For each database and schema."""
    places = list(places)
    database, schema = places[0]
    task = a_task(
        server_id=TARGET_SERVER,
        server_name="targets",
        target_type="SqlSchema" if schema else "SqlDatabase",
        database_name=database,
        schema_name=schema,
    )
    texts = await _heard(fleet, script, task, together=together)
    lock = str(lock_key(task))
    return [
        tuple(
            text.replace(task.invocation_id.hex, uuid4().hex)
            .replace(lock, str(number))
            .replace(database, name)
            .replace(schema or "\0", inner or "\0")
            for text in texts
        )
        for number, (name, inner) in enumerate(places, 1_000_000_000)
    ]


async def say(connection: asyncpg.Connection, texts: Said) -> None:
    for text in texts:
        await connection.execute(text)


async def say_bare(connection: asyncpg.Connection, _: Said) -> None:
    await connection.execute("select 1")


class Kept:
    """As many connections as there are slots, spread over the databases and kept."""

    def __init__(self, connections: list[tuple[str, asyncpg.Connection]]) -> None:
        self._connections = connections

    @classmethod
    async def of(cls, fleet: Fleet) -> "Kept":
        many = len(fleet.databases)
        names = [fleet.databases[number % many] for number in range(SLOTS)]
        return cls([(name, await fleet.connect(name)) for name in names])

    async def rate(self, tasks: Iterable[tuple[str, Said]], say: Say = say) -> float:
        """Tasks per second; each connection takes those of its database from a list."""
        lists: dict[str, deque[Said]] = {}
        for database, texts in tasks:
            lists.setdefault(database, deque()).append(texts)
        many = sum(map(len, lists.values()))

        async def work(database: str, connection: asyncpg.Connection) -> None:
            waiting = lists.get(database) or deque()
            while waiting:
                await say(connection, waiting.popleft())

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for database, connection in self._connections:
                group.create_task(work(database, connection))
        return many / (time.perf_counter() - began)

    async def close(self) -> None:
        for _, connection in self._connections:
            await connection.close()


async def _heard(fleet: Fleet, script: str, task: Task, *, together: bool) -> Said:
    target = fleet.target
    server = TargetServer(
        server_id=TARGET_SERVER,
        name="targets",
        hosts=(target["host"],),
        port=target["port"],
        ssl_mode="disable",
        max_connections=SLOTS,
    )
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    sessions = ConnectionPool(Connector(settings()), credentials, Clock(), lambda _: None)
    with tempfile.TemporaryDirectory() as home:
        host = TargetDatabase(
            None, task.database_name, Path(home), sessions, server, Role(USER, PASSWORD), []
        )
        try:
            async with asyncio.timeout(PATIENCE):
                session = await host.lend()
                heard = overhear(session)
                sessions.give_back(session)
                step, within = a_step(script, timeout=TIMEOUT), float(TIMEOUT)
                if together:
                    (outcome,) = await host.run_batch(step, [task], within=within)
                else:
                    outcome = await host.run(step, task, within=within)
        finally:
            await sessions.close()
    if outcome is None or outcome.lifecycle != "Succeeded" or {heard[0], heard[-1]} != {LAST}:
        raise SystemExit(f"an attempt said {heard} and came to {outcome}")
    return tuple(heard[1:])
