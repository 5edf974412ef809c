"""Scripts run at a real target without a control database: `a_target_database(targets, tmp_path)` and what it can do.

async with a_target_database(targets, tmp_path) as target:
    outcome = await target.run("select 1")            lends a session, runs one attempt, gives it back
    outcomes = await target.ride("select 1", tasks)   the same for several that go together, in their order
    target.task(…), target.step("…", guard=True)       what an attempt is given
    await target.fetch("select …")                    looks from outside, as the administrator of the database
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import msgspec
from msgspec.structs import replace

from engine.attempt.attempt import SingleTaskExecutor
from engine.attempt.executor import ExecutorContext, ExecutorTask
from engine.pool.budget import Contact
from engine.attempt.read_batch import ReadBatchExecutor, UnbatchableSteps
from engine.access.credentials import Credentials
from engine.attempt.outcome import Outcome
from engine.pool.pooled_connection import PooledConnection
from engine.pool.pool import ConnectionPool
from engine.attempt.cancel_token import CancelToken
from engine.model.credential import VersionedCredential
from engine.model.server import TargetServer
from engine.model.step import Step
from engine.model.task import Task, variable_values
from muster.core.clock import Clock
from muster.core.connect import Connector
from muster.core.settings import Secret, Settings
from tests.support.tcp_proxy import TcpProxy
from tests.support.postgres import Postgres, Role, drop
from tests.support.waiting import timed_out

IDENTITY = UUID(int=7)
SERVER = "/subscriptions/s1/resourcegroups/g1/providers/microsoft.sql/servers/eu1"


def settings(**more: Any) -> Settings:
    return Settings(
        database_url=Secret("postgresql://u:p@10.255.0.1:5432/m"),
        target_allow=("127.0.0.0/8",),
        **more,
    )


def a_step(script: str, *, timeout: int = 60, **options: Any) -> Step:
    document = {
        "jobName": "nightly", "stepName": "first", "stepId": 1, "targetGroupName": "everything",
        "script": script, "timeoutSeconds": timeout, "contentHash": "ab" * 32, "options": options,
    }  # fmt: skip
    return msgspec.convert(document, Step)


def a_task(**more: Any) -> Task:
    given = {
        "run_day": date(2025, 1, 1), "job_execution_id": uuid4(), "step_id": 1,
        "ordinal": 1, "attempt": 1, "invocation_id": uuid4(), "target_execution_id": uuid4(),
        "job_id": uuid4(), "job_version": 3, "run_create_time": datetime(2025, 1, 1, 12, tzinfo=UTC),
        "overrides": {}, "target_type": "SqlDatabase", "target_id": uuid4(), "server_id": SERVER,
        "server_name": "eu1", "pool_name": None, "database_name": "shop", "schema_name": None,
        "labels": {}, "credential_id": None, "credential_version": None, "first_start": None,
        "tried_at": None, "directory": 1, "script_outcome": None, "committed_attempt": None,
    }  # fmt: skip
    return Task(**(given | more))


async def no_intent(_task: Task, _xid: str) -> bool:
    raise AssertionError("a batch commits nothing")


def record_messages(session: PooledConnection) -> list[str]:
    """A list that grows by every message that the session sends from now on."""
    messages: list[str] = []
    framed = session.framed

    def both(text: str) -> bytes:
        messages.append(text)
        return framed(text)

    session.framed = both  # type: ignore[method-assign]
    return messages


@dataclass
class TargetDatabase:
    targets: Postgres
    database: str
    home: Path
    sessions: ConnectionPool
    server: TargetServer
    owner: Role
    contacts: list[Contact]
    started: list[UUID] = field(default_factory=list)
    intended: list[str] = field(default_factory=list)
    unbatchable_steps: UnbatchableSteps = field(default_factory=UnbatchableSteps)

    def who(self, role: Role | None = None, **more: Any) -> VersionedCredential:
        role = role or self.owner
        file = self.home / role.name
        if not file.exists():
            file.write_text(role.password)
        given = {
            "name": role.name, "username": role.name, "secret": f"file:{file}",
            "credential_id": UUID(int=hash(role.name) & (2**127 - 1)), "row_version": 1,
        }  # fmt: skip
        return VersionedCredential(**(given | more))

    def task(self, **more: Any) -> Task:
        return a_task(**({"database_name": self.database} | more))

    async def lend(
        self, *, role: Role | None = None, database: str | None = None, **more: Any
    ) -> PooledConnection:
        given = {"direct": False, "deadline": now() + 30} | more
        return await self.sessions.lend(
            self.server, database or self.database, self.who(role), IDENTITY, **given
        )

    async def run(
        self,
        script: str | Step,
        task: Task | None = None,
        *,
        token: CancelToken | None = None,
        within: float = 60.0,
        server: TargetServer | None = None,
        who: VersionedCredential | None = None,
        intend: Any = None,
        start: Any = None,
        **options: Any,
    ) -> Outcome | None:
        step = script if isinstance(script, Step) else a_step(script, **options)
        task = task or self.task()
        who = (who or self.who()).with_variables(variable_values(task, step))
        deadline = now() + within

        async def report_start(_: Sequence[Task]) -> set[UUID]:
            if start is not None:
                return set() if await start() else {task.invocation_id}
            self.started.append(task.invocation_id)
            return set()

        async def report_intent(_: Task, xid: str) -> bool | None:
            if intend is not None:
                return await intend(xid)
            self.intended.append(xid)
            return True

        session = await self.sessions.lend(
            (server or self.server).for_access(step.options.settings.access), task.database_name or "postgres", who, IDENTITY,
            direct=step.needs_session, deadline=deadline,
        )  # fmt: skip
        try:
            context = ExecutorContext(session, step, report_start, report_intent)
            entry = ExecutorTask(task, token or CancelToken(), deadline)
            outcomes = await SingleTaskExecutor(context).run([entry])
            return outcomes[0][1] if outcomes else None
        finally:
            self.sessions.give_back(session)

    async def run_batch(
        self,
        script: str | Step,
        tasks: Sequence[Task],
        *,
        tokens: Sequence[CancelToken] | None = None,
        within: float | Sequence[float] = 60.0,
        session: PooledConnection | None = None,
        refused: Collection[Task] = (),
        start: Any = None,
        **options: Any,
    ) -> list[Outcome | None]:
        """None: its start was refused. A session that is given is given back."""
        step = script if isinstance(script, Step) else a_step(script, **options)
        times = [within] * len(tasks) if isinstance(within, float) else within
        tokens = tokens or [CancelToken() for _ in tasks]
        session = session or await self.lend()
        entries = [
            ExecutorTask(task, token, now() + time)
            for task, token, time in zip(tasks, tokens, times, strict=True)
        ]

        async def report_start(_: Sequence[Task]) -> set[UUID]:
            if start is not None:
                return await start()
            self.started.extend(task.invocation_id for task in tasks)
            return {task.invocation_id for task in refused}

        try:
            context = ExecutorContext(session, step, report_start, no_intent)
            told = await ReadBatchExecutor(context, self.unbatchable_steps).run(entries)
        finally:
            self.sessions.give_back(session)
        outcomes = {task.invocation_id: outcome for task, outcome in told}
        assert len(outcomes) == len(told), "each has one"
        return [outcomes.get(task.invocation_id) for task in tasks]

    async def fetch(self, query: str, *args: Any) -> list[asyncpg.Record]:
        async with self.connection() as connection:
            return await connection.fetch(query, *args)

    async def value(self, query: str, *args: Any) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(query, *args)

    async def execute(self, statement: str) -> None:
        async with self.connection() as connection:
            await connection.execute(statement)

    @contextlib.asynccontextmanager
    async def connection(
        self, role: Role | None = None, **more: Any
    ) -> AsyncIterator[asyncpg.Connection]:
        url = self.targets.url(self.database, role or self.targets.root)
        connection = await asyncpg.connect(url, timeout=10, **more)
        try:
            yield connection
        finally:
            if not connection.is_closed():
                await connection.close()

    async def watches_client(self) -> bool:
        """Whether the server can notice that its client is gone, which it learned with version 14."""
        return await self.value(
            "select exists (select from pg_settings where name = 'client_connection_check_interval')"
        )

    async def ours(self) -> int:
        """How many sessions the owner of this place has at the server."""
        return await self.value(
            "select count(*) from pg_stat_activity where usename = $1", self.owner.name
        )


@contextlib.asynccontextmanager
async def a_target_database(
    targets: Postgres, home: Path, **server: Any
) -> AsyncIterator[TargetDatabase]:
    """A database of its own with a role of its own, and sessions to it."""
    name = f"shop_{secrets.token_hex(5)}"
    owner = Role(name, secrets.token_hex(8))
    root = await asyncpg.connect(targets.url("postgres", targets.root))
    await root.execute(f"create role {name} login password '{owner.password}'")
    await root.execute(f"create database {name} owner {name} template template0")
    contacts: list[Contact] = []
    credentials = Credentials(UUID(int=1), Secret(""), ("file:",), Clock())
    sessions = ConnectionPool(Connector(settings()), credentials, Clock(), contacts.append)
    given = {
        "server_id": SERVER, "name": "eu1", "hosts": (targets.host,), "port": targets.port,
        "ssl_mode": "disable", "max_connections": 8, "connections_per_second": 1000.0,
    }  # fmt: skip
    target = TargetDatabase(
        targets, name, home, sessions, TargetServer(**(given | server)), owner, contacts
    )
    try:
        yield target
    finally:
        await sessions.close()
        await drop(root, name)
        await root.execute(f"drop owned by {name} cascade")
        await root.execute(f"drop role {name}")
        await root.close()


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(check: Any, limit: float = 20.0) -> Any:
    """The first true answer of an async function."""
    found = None
    try:
        async with asyncio.timeout(limit):
            while not (found := await check()):
                await asyncio.sleep(0.02)
            return found
    except TimeoutError as error:
        raise TimeoutError(timed_out(check, limit, found)) from error


def renewed(task: Task, **more: Any) -> Task:
    """The next attempt of the same target execution."""
    return replace(task, invocation_id=uuid4(), attempt=task.attempt + 1, **more)


@dataclass
class CuttingProxy(TcpProxy):
    """A line that breaks when a message of ours has this in it, once."""

    word: bytes = b"commit\0"
    after: bool = False  # the server gets it and answers, and we never hear the answer
    recovers: bool = True  # who calls anew gets through
    _armed: bool = True
    _answered: bool = False

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self._answered or (self._armed and self.word in data and not self.after):
                    self._armed = self._answered = False
                    self.cut()
                    self.accepting = self.recovers
                    return
                if self._armed and self.word in data:
                    self._armed, self._answered = False, True
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def a_cutting_proxy(target: TargetDatabase, **how: Any) -> AsyncIterator[TargetServer]:
    """The place's server, behind the snare."""
    proxy = CuttingProxy(target.targets.port, **how)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield msgspec.structs.replace(target.server, port=port)
    finally:
        proxy.recovers = False
        proxy.cut()
        listener.close()
        await listener.wait_closed()
