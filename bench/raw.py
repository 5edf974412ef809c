"""The limit: bare asyncpg that sends to targets the messages of a host for the same tasks, and nothing else.

The messages are not repeated here: one attempt runs as a host runs it, alone or in a read batch, and its messages are
recorded; the other tasks get the same messages with their own names in them.
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
from tests.support.attempts import TargetDatabase, a_step, a_task, record_messages, settings
from tests.support.postgres import Role

ATTEMPT_TIMEOUT = 10.0  # seconds
STEP_TIMEOUT = 43_200  # seconds; the default of a step
LAST = "discard all"  # resets the session for the next task
Messages = tuple[str, ...]  # of one task; each is answered before the next is sent
Send = Callable[[asyncpg.Connection, Messages], Awaitable[None]]


async def task_messages(
    fleet: Fleet,
    script: str,
    targets: Iterable[tuple[str, str | None]],
    *,
    together: bool = False,
) -> list[Messages]:
    """The messages of a task for each database and schema."""
    targets = list(targets)
    database, schema = targets[0]
    task = a_task(
        server_id=TARGET_SERVER,
        server_name="targets",
        target_type="SqlSchema" if schema else "SqlDatabase",
        database_name=database,
        schema_name=schema,
    )
    texts = await _recorded_messages(fleet, script, task, together=together)
    lock = str(lock_key(task))
    return [
        tuple(
            text.replace(task.invocation_id.hex, uuid4().hex)
            .replace(lock, str(number))
            .replace(database, name)
            .replace(schema or "\0", inner or "\0")
            for text in texts
        )
        for number, (name, inner) in enumerate(targets, 1_000_000_000)
    ]


async def send(connection: asyncpg.Connection, texts: Messages) -> None:
    for text in texts:
        await connection.execute(text)


async def send_bare(connection: asyncpg.Connection, _: Messages) -> None:
    await connection.execute("select 1")


class KeptConnections:
    """One open connection for each slot, spread over the databases."""

    def __init__(self, connections: list[tuple[str, asyncpg.Connection]]) -> None:
        self._connections = connections

    @classmethod
    async def of(cls, fleet: Fleet) -> "KeptConnections":
        many = len(fleet.databases)
        names = [fleet.databases[number % many] for number in range(SLOTS)]
        return cls([(name, await fleet.connect(name)) for name in names])

    async def rate(self, tasks: Iterable[tuple[str, Messages]], send: Send = send) -> float:
        """Tasks per second; each connection takes those of its database from a list."""
        lists: dict[str, deque[Messages]] = {}
        for database, texts in tasks:
            lists.setdefault(database, deque()).append(texts)
        many = sum(map(len, lists.values()))

        async def work(database: str, connection: asyncpg.Connection) -> None:
            waiting = lists.get(database) or deque()
            while waiting:
                await send(connection, waiting.popleft())

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for database, connection in self._connections:
                group.create_task(work(database, connection))
        return many / (time.perf_counter() - began)

    async def close(self) -> None:
        for _, connection in self._connections:
            await connection.close()


async def _recorded_messages(fleet: Fleet, script: str, task: Task, *, together: bool) -> Messages:
    address = fleet.target
    server = TargetServer(
        server_id=TARGET_SERVER,
        name="targets",
        hosts=(address["host"],),
        port=address["port"],
        ssl_mode="disable",
        max_connections=SLOTS,
    )
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    sessions = ConnectionPool(Connector(settings()), credentials, Clock(), lambda _: None)
    with tempfile.TemporaryDirectory() as home:
        target = TargetDatabase(
            None, task.database_name, Path(home), sessions, server, Role(USER, PASSWORD), []
        )
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT):
                session = await target.lend()
                messages = record_messages(session)
                sessions.give_back(session)
                step, within = a_step(script, timeout=STEP_TIMEOUT), float(STEP_TIMEOUT)
                if together:
                    (outcome,) = await target.run_batch(step, [task], within=within)
                else:
                    outcome = await target.run(step, task, within=within)
        finally:
            await sessions.close()
    if outcome is None or outcome.lifecycle != "Succeeded" or {messages[0], messages[-1]} != {LAST}:
        raise SystemExit(f"an attempt sent {messages} and ended as {outcome}")
    return tuple(messages[1:])
