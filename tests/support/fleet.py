"""A fleet of real databases and an engine with hosts in this process: jobs run, for tests of what becomes of them.

async with start_fleet(settings, db, targets, folder, databases=5) as fleet:
    run = await fleet.run("select 1")                  a job with one step, started and waited for
    await fleet.lifecycles(run)                        {"Succeeded": 5}
    await fleet.tasks(run)                             every attempt
    await fleet.query(0, "select …")                   in the first of the databases
The core and the hosts are the real ones; `fleet.kill(…)` breaks one off as a crash would, `fleet.kept()` starts
again what ended by itself. `Shared(…)` is a fleet that many tests of a module use, until one of them breaks it.
"""

import asyncio
import base64
import contextlib
import json
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

import asyncpg

from engine.process.bootstrap import Bootstrap
from engine.core.main import Core
from engine.process.lease import Lease
from engine.db.control_db import ControlDatabase
from engine.host.main import JobTaskHost
from fsm.launch.protocol import Kind, Spec, Start
from muster.core.clock import Clock
from muster.core.db import Database, open_database
from muster.core.settings import Secret, Settings
from tests.support.control_db import Account, installed
from tests.support.engine_fixture import secrets_of, spec_settings
from tests.support.launching import until
from tests.support.postgres import Postgres, drop

SERVER = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, max_connections,
    connections_per_second, job_credential, revision)
values ($1, $2, '{127.0.0.1}', $3, 'disable', $4, $5, 'fleet', 1)
"""
OVER = ("Succeeded", "SucceededWithSkipped", "Failed", "TimedOut", "Canceled", "Skipped")
HEARTBEAT = 0.3
BATCH_READS = os.environ.get("MUSTER_TEST_BATCH_READS") != "off"  # MUSTER_BATCH_READS of the hosts
KEYS = "test:" + base64.b64encode(bytes(32)).decode()
T = TypeVar("T")


@dataclass
class Alive:
    """A core or a host, and the loop that it lives in."""

    living: Core | JobTaskHost
    task: asyncio.Task[None]
    stop: asyncio.Event
    store: ControlDatabase
    id: UUID


@dataclass
class Fleet:
    account: Account
    targets: Postgres
    folder: Path
    databases: list[str]
    given: dict[str, Any]
    root: asyncpg.Connection  # on the control database, as the owner
    epoch: int = 0
    alive: list[Alive] = field(default_factory=list)

    # The engine

    async def core(self, **given: Any) -> Alive:
        self.epoch += 1
        return self._begin(Core, Kind.ENGINE, given)

    async def host(self, **given: Any) -> Alive:
        return self._begin(JobTaskHost, Kind.HOST, given)

    def _begin(self, make: Any, kind: Kind, given: dict[str, Any]) -> Alive:
        start = Start(
            id=uuid4(), kind=kind, url="http://nowhere.test", token="t", heartbeat=HEARTBEAT,
            patience=20.0, epoch=self.epoch, account_uid=self.account.uid,
            spec=Spec(
                settings=spec_settings(self.account, **({"batchReads": BATCH_READS} | self.given | given))
            ),
            secrets=secrets_of(self.account),
        )  # fmt: skip
        bootstrap = Bootstrap.of(start)
        store, clock, stop = ControlDatabase(bootstrap), Clock(), asyncio.Event()
        lease = Lease("control database", bootstrap.host_patience, clock)
        living = make(bootstrap, store, lease, clock)
        one = Alive(living, asyncio.create_task(living.run(stop)), stop, store, start.id)
        self.alive.append(one)
        return one

    async def end(self, one: Alive) -> None:
        """As it was asked to."""
        one.stop.set()
        await asyncio.wait_for(one.task, 20)
        await one.store.close()
        self.alive.remove(one)

    async def kill(self, one: Alive) -> None:
        """Broken off where it is; whoever is in the middle of a call hangs up."""
        if one in self.alive:
            self.alive.remove(one)
            one.task.cancel()
            await asyncio.wait({one.task})
            await one.store.close()

    @contextlib.asynccontextmanager
    async def kept(self) -> AsyncIterator[list[Alive]]:
        """Who ends by itself is followed by another of its kind, as under a launcher; yields the ends."""
        ends: list[Alive] = []

        async def keep() -> None:
            while True:
                for one in [one for one in self.alive if one.task.done()]:
                    ends.append(one)
                    await self.kill(one)
                    await (self.core() if isinstance(one.living, Core) else self.host())
                await asyncio.sleep(0.02)

        keeping = asyncio.create_task(keep())
        try:
            yield ends
        finally:
            keeping.cancel()
            await asyncio.wait({keeping})

    async def close(self) -> None:
        for one in self.alive:
            one.task.cancel()
        for one in self.alive:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await one.task
            await one.store.close()

    async def renew(self) -> None:
        """Our own session, after the server of the control database was away."""
        self.root.terminate()
        self.root = await self.account.connect("root")
        await self.root.execute(f'set role "{self.account.roles.owner}"')

    # Jobs

    async def job(self, name: str, *scripts: str, group: str = "everything", **more: Any) -> None:
        """A job with a step for each script; `more` are columns of sp_add_jobstep."""
        await self.call("sp_add_job", job_name=name)
        for number, script in enumerate(scripts, 1):
            await self.call(
                "sp_add_jobstep", job_name=name, step_name=f"step{number}", command=script,
                target_group_name=group, **more,
            )  # fmt: skip

    async def schema_group(self) -> None:
        """`schemas`, whose server must be asked."""
        await self.call("sp_add_target_group", target_group_name="schemas")
        await self.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=self.databases[0], schema_pattern="public",
            refresh_credential_name="fleet",
        )  # fmt: skip

    async def start(self, name: str) -> UUID:
        return await self.root.fetchval("select jobs.sp_start_job($1)", name)

    async def run(self, *scripts: str, within: float = 30.0, **more: Any) -> UUID:
        name = f"job {secrets.token_hex(4)}"
        await self.job(name, *scripts, **more)
        run = await self.start(name)
        await self.ended(run, within)
        return run

    async def ended(self, run: UUID, within: float = 30.0) -> str:
        async def over() -> bool:
            return await self.lifecycle(run) in OVER

        try:
            await until(over, within)
        except TimeoutError:
            raise AssertionError(f"the run does not end: {await self.all(run)}") from None
        return await self.lifecycle(run)

    async def call(self, function: str, **named: Any) -> Any:
        given = ", ".join(f"{name} => ${number}" for number, name in enumerate(named, 1))
        values = [json.dumps(v) if isinstance(v, dict) else v for v in named.values()]
        return await self.root.fetchval(f"select * from jobs.{function}({given})", *values)

    # What became of them

    async def lifecycle(self, run: UUID) -> str:
        return await self.root.fetchval(
            "select lifecycle from jobs_internal.job_execution where job_execution_id = $1", run
        )

    async def lifecycles(self, run: UUID) -> Counter[str]:
        rows = await self.rows("target_execution", run)
        return Counter(row["lifecycle"] for row in rows)

    async def in_state(self, run: UUID, lifecycle: str, many: int) -> bool:
        return (await self.lifecycles(run))[lifecycle] == many

    async def targets_of(self, run: UUID) -> list[asyncpg.Record]:
        return await self.rows("target_execution", run)

    async def tasks(self, run: UUID) -> list[asyncpg.Record]:
        return await self.rows("task", run)

    async def steps(self, run: UUID) -> list[asyncpg.Record]:
        return await self.rows("step_execution", run)

    async def rows(self, table: str, run: UUID) -> list[asyncpg.Record]:
        order = {"target_execution": "step_id, ordinal", "step_execution": "step_id"}
        return await self.root.fetch(
            f"select * from jobs_internal.{table} where job_execution_id = $1"
            f" order by {order.get(table, 'step_id, ordinal, attempt')}",
            run,
        )

    async def all(self, run: UUID) -> dict[str, list[Any]]:
        tables = ("job_execution", "step_execution", "target_execution", "task")
        return {
            table: [
                {name: value for name, value in dict(row).items() if value is not None}
                for row in await self.root.fetch(
                    f"select * from jobs_internal.{table} where job_execution_id = $1 limit 5", run
                )
            ]
            for table in tables
        }

    async def query(self, database: int | str, sql: str, *args: Any) -> list[asyncpg.Record]:
        name = database if isinstance(database, str) else self.databases[database]
        connection = await asyncpg.connect(
            self.targets.url(name, self.targets.administrator), timeout=5
        )
        try:
            return await connection.fetch(sql, *args)
        finally:
            await connection.close()

    async def execute(self, database: str, sql: str) -> None:
        """Several statements, as the administrator."""
        connection = await asyncpg.connect(
            self.targets.url(database, self.targets.administrator), timeout=5
        )
        try:
            await connection.execute(sql)
        finally:
            await connection.close()

    async def everywhere(self, sql: str) -> list[Any]:
        """The first value that each database answers."""
        return [
            (rows[0][0] if (rows := await self.query(name, sql)) else None)
            for name in self.databases
        ]

    async def sessions(self) -> int:
        """Of ours, at the targets."""
        look = "select count(*) from pg_stat_activity where datname = any($1)"
        return (await self.query("postgres", look, self.databases))[0][0]


@contextlib.asynccontextmanager
async def start_fleet(
    settings: Settings, db: Database, targets: Postgres, folder: Path, *,
    databases: int = 3, max_connections: int | None = 20, rate: float = 10_000, hosts: int = 1, start: bool = True,
    account: Account | None = None, **given: Any,
) -> AsyncIterator[Fleet]:  # fmt: skip
    """On a control database of its own, or on that of `account`, which may be at another server."""
    account = account or await installed(settings, db, targets)
    password = folder / "password"
    password.write_text(targets.administrator.password)
    root = await account.connect("root")
    mark = secrets.token_hex(4)
    names = [f"fleet_{mark}_{number}" for number in range(databases)]
    maker = await asyncpg.connect(targets.url("postgres", targets.administrator))
    given = {
        "credentialReferences": ["file:"],
        "hosts": hosts,
        "outputSpoolDir": str(folder),
    } | given
    fleet = Fleet(account, targets, folder, names, given, root)
    try:
        for name in names:
            await maker.execute(f'create database "{name}" template template0')
        await root.execute(f'set role "{account.roles.owner}"')
        await root.execute(
            "insert into jobs_internal.credential (name, username, secret, created_by, modified_by)"
            " values ('fleet', $1, $2, 'test', 'test')",
            targets.administrator.name,
            f"file:{password}",
        )
        await root.execute(SERVER, "/fleet", "fleet", targets.port, max_connections, rate)
        await fleet.call("sp_add_target_group", target_group_name="everything")
        for name in names:
            await fleet.call(
                "sp_add_target_group_member", target_group_name="everything",
                target_type="SqlDatabase", server_name="fleet", database_name=name,
            )  # fmt: skip
        if start:
            await fleet.core()
            for _ in range(hosts):
                await fleet.host()
        yield fleet
    finally:
        await fleet.close()
        await fleet.root.close()
        if maker.is_closed():  # its server was away
            maker = await asyncpg.connect(targets.url("postgres", targets.administrator))
        for name in names:
            await drop(maker, name)
        await maker.close()


@contextlib.asynccontextmanager
async def plane(postgres: Postgres) -> AsyncIterator[tuple[Settings, Database]]:
    """The metadata database that a control database is installed from; the fixtures have one for each test."""
    name = await asyncio.to_thread(postgres.create_database)
    settings = Settings(
        database_url=Secret(postgres.url(name)), keys=Secret(KEYS), target_allow=("127.0.0.0/8",)
    )
    db = await open_database(settings, application="muster-test")
    try:
        yield settings, db
    finally:
        await db.close()
        await asyncio.to_thread(postgres.drop_database, name)


class Shared(Generic[T]):
    """Made when it is first needed, and made anew after a test that failed with it, which it then tells about."""

    def __init__(
        self,
        make: Callable[[], contextlib.AbstractAsyncContextManager[T]],
        tell: Callable[[T], str] = lambda _: "",
    ) -> None:
        self._make = make
        self._tell = tell
        self._made: tuple[contextlib.AbstractAsyncContextManager[T], T] | None = None

    @contextlib.asynccontextmanager
    async def lent(self, failures: Callable[[], int]) -> AsyncIterator[T]:
        if self._made is None:
            maker = self._make()
            self._made = maker, await maker.__aenter__()
        before = failures()
        yield self._made[1]
        if failures() > before:
            print(self._tell(self._made[1]))
            await self.close()

    async def close(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made[0].__aexit__(None, None, None)
