"""A fleet to measure on, as a user has it: `muster up`, an account, and a server full of databases.

with start_fleet(databases=100, schemas=100) as fleet:
    fleet.a_job("fanout", "select 1")          one step for each script, on every schema of every database
    times = fleet.run("fanout")                started by REST and waited for; times as they were recorded
    fleet.wait(coroutine)                      in one uvloop, as an engine has, so that connections last

Limits of the server that would bind are raised; `RAISED` lists them.
"""

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import asyncpg
import uvloop

from bench import cpu
from bench.report import print_line, summary
from muster.core.cluster import Cluster
from tests.support.stack import GROUP, LOGIN, SERVER, Stack, a_server, an_account, muster_up, until

T = TypeVar("T")

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
TARGET_COUNT = int(os.environ.get("BENCH_TARGETS", "10000"))
DATABASES = min(int(os.environ.get("BENCH_DATABASES", "100")), TARGET_COUNT)
SCHEMAS = TARGET_COUNT // DATABASES  # in each database
TARGETS = DATABASES * SCHEMAS
SLOTS = 100  # of an account as shipped (JA100): so many tasks at once, on every side
SESSIONS = 128  # maxConnections of the server
RATE = 1000  # connectionsPerSecond of the server, the largest value that the API takes
SERVER_MAX_CONNECTIONS = 600  # max_connections of that PostgreSQL: every side keeps its connections
RAISED = (
    f"raised: maxConnections ({SESSIONS} unless the note says otherwise), connectionsPerSecond {RATE} and"
    f" PostgreSQL's max_connections {SERVER_MAX_CONNECTIONS} of the targets' server; all else as shipped"
)
TARGET_SERVER = f"{GROUP}/providers/Microsoft.Sql/servers/targets"
USER, PASSWORD = "targets_admin", "correct horse"
RUN_TIMEOUT = 1800.0  # seconds
UPDATE = "update counter set n = n + 1"  # each schema of a fleet has this table, with one row

SIZE = "select pg_database_size(current_database())"
TIMES = """
select x.lifecycle, x.end_time is not null as over, extract(epoch from x.end_time) as ended,
       extract(epoch from x.create_time) as created
  from jobs_internal.job_execution x where x.job_execution_id = $1
"""
STEPS = """
select t.step_id, count(*) as tasks, count(*) filter (where t.lifecycle = 'Succeeded') as succeeded,
       extract(epoch from min(e.create_time)) as planned, extract(epoch from min(t.create_time)) as reserved,
       extract(epoch from min(t.start_time)) as started, extract(epoch from max(t.end_time)) as ended
  from jobs_internal.task t
  join jobs_internal.target_execution e using (run_day, job_execution_id, step_id, ordinal)
 where t.job_execution_id = $1
 group by t.step_id order by t.step_id
"""


@dataclass(frozen=True)
class Step:
    """Instants, in seconds of the epoch."""

    tasks: int
    planned: float  # its targets were in the control database
    reserved: float  # the first of its tasks had a host
    started: float  # the first of its tasks began
    ended: float  # the last of its tasks was recorded

    @property
    def rate(self) -> float:
        return self.tasks / (self.ended - self.started)


@dataclass(frozen=True)
class RunTimes:
    """Instants of a run, in seconds of the epoch."""

    requested: float  # when the start was sent
    created: float
    ended: float
    steps: list[Step]


@dataclass
class Fleet:
    stack: Stack
    account: str
    control: Cluster
    server: Cluster
    databases: list[str]
    schemas: list[str]
    runner: asyncio.Runner
    root: asyncpg.Connection  # on the control database

    # As a user

    def a_job(self, name: str, *scripts: str, group: str = "schemas") -> None:
        self.stack.put(f"{self.account}/jobs/{name}", {"properties": {}})
        for number, script in enumerate(scripts, 1):
            step = {
                "targetGroup": f"{self.account}/targetGroups/{group}",
                "credential": f"{self.account}/credentials/login",
                "action": {"value": script},
            }
            self.stack.put(f"{self.account}/jobs/{name}/steps/step{number}", {"properties": step})

    def a_group(self, name: str, **member: str) -> None:
        login = {"refreshCredential": f"{self.account}/credentials/login"}
        members = [{"serverName": "targets", **login, **member}]
        self.stack.put(f"{self.account}/targetGroups/{name}", {"properties": {"members": members}})

    def numbered_schemas(self, count: int) -> str:
        """A group of so many targets, spread over the databases; nothing is made at the server for them."""
        name = f"numbered_{count}"
        databases = ", ".join(f"'{each}'" for each in self.databases)
        query = (
            f"select 'targets' as server_name, (array[{databases}])[1 + n % {len(self.databases)}] as database_name,"
            f" 's' || n as schema_name from generate_series(0, {count - 1}) n"
        )
        self.a_group(name, type="SqlQuery", databaseName=self.databases[0], query=query)
        return name

    def start(self, job: str) -> UUID:
        answer = self.stack.client.post(f"{self.account}/jobs/{job}/start").raise_for_status()
        return UUID(answer.json()["name"])

    def cancel(self, job: str, run: UUID) -> None:
        path = f"{self.account}/jobs/{job}/executions/{run}/cancel"
        self.stack.client.post(path).raise_for_status()
        until(lambda: self.wait(self.root.fetchrow(TIMES, run))["over"], seconds=RUN_TIMEOUT)

    def run(self, job: str) -> RunTimes:
        requested = time.time()
        return self.wait(self.times(self.finished(job), requested))

    def finished(self, job: str) -> UUID:
        run = self.start(job)
        until(lambda: self.wait(self.root.fetchrow(TIMES, run))["over"], seconds=RUN_TIMEOUT)
        return run

    # What the control database recorded

    async def times(self, run: UUID, requested: float) -> RunTimes:
        row = await self.root.fetchrow(TIMES, run)
        steps = await self.root.fetch(STEPS, run)
        if row["lifecycle"] != "Succeeded" or any(s["tasks"] != s["succeeded"] for s in steps):
            raise SystemExit(f"a run ended {row['lifecycle']}: {await self.failures(run)}")
        return RunTimes(
            requested,
            float(row["created"]),
            float(row["ended"]),
            [
                Step(
                    s["tasks"], *(float(s[n]) for n in ("planned", "reserved", "started", "ended"))
                )
                for s in steps
            ],
        )

    async def failures(self, run: UUID) -> list[str]:
        rows = await self.root.fetch(
            "select distinct concat_ws(' ', lifecycle, end_reason, last_message) as failure"
            " from jobs_internal.target_execution where job_execution_id = $1"
            " and lifecycle <> 'Succeeded' limit 5",
            run,
        )
        return [row["failure"] for row in rows]

    async def sessions(self) -> int:
        """Connections of Muster at the targets."""
        return await self.at_server(
            "select count(*) from pg_stat_activity where datname = any($1)"
            " and application_name like 'muster%'",
            self.databases,
        )

    async def at_server(self, query: str, *args: Any) -> Any:
        """One value, read by the superuser of the targets' server."""
        async with a_session(self.server.superuser_url().reveal()) as connection:
            return await connection.fetchval(query, *args)

    def cpu(self) -> dict[str, cpu.Used]:
        """CPU seconds that each part has used so far."""
        return {
            "client": cpu.of({os.getpid()}),
            "core": cpu.of(self.stack.processes("engine")),
            "host": cpu.of(self.stack.processes("host")),
            "control": cpu.of(cpu.working_in(self.control.data)),
            "targets": cpu.of(cpu.working_in(self.server.data)),
        }

    # For the other sides

    async def connect(self, database: str) -> asyncpg.Connection:
        """As a host connects, without its checks."""
        return await asyncpg.connect(**self.target, database=database, ssl=False)

    @property
    def target(self) -> dict[str, Any]:
        address = {"host": "127.0.0.1", "port": self.server.port}
        return address | {"user": USER, "password": PASSWORD}

    async def a_database(self, name: str) -> str:
        """Creates a database beside the control database; returns its URL."""
        await self.root.execute(f"create database {name}")
        return self.control.superuser_url(name).reveal()

    @property
    def control_url(self) -> str:
        """Of the administrator, who may start jobs."""
        user, password = LOGIN["administratorLogin"], LOGIN["administratorLoginPassword"]
        return f"postgresql://{user}:{quote(password)}@127.0.0.1:{self.control.port}/jobs_bench"

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(coroutine)


@contextlib.contextmanager
def start_fleet(
    *, databases: int, schemas: int, sessions: int = SESSIONS, batch_reads: bool = True
) -> Iterator[Fleet]:
    with (
        tempfile.TemporaryDirectory() as name,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        with muster_up(folder, MUSTER_BATCH_READS=str(batch_reads)) as stack:
            a_server(stack)
            server = runner.run(_a_target_server(stack, sessions))
            names = [f"tenant_{number:03}" for number in range(databases)]
            schema_names = [f"s{number:03}" for number in range(schemas)]
            runner.run(_fill(server, names, schema_names))
            account = an_account(stack, "bench")
            control = _cluster(stack, SERVER)
            root = runner.run(asyncpg.connect(control.superuser_url("jobs_bench").reveal()))
            fleet = Fleet(stack, account, control, server, names, schema_names, runner, root)
            login = {"username": USER, "password": PASSWORD}
            stack.put(f"{account}/credentials/login", {"properties": login})
            fleet.a_group("databases", type="SqlServer")
            fleet.a_group("schemas", type="SqlSchema", schemaPattern="s%")
            try:
                yield fleet
            finally:
                runner.run(root.close())
                stack.follow(stack.client.delete(account))


@contextlib.asynccontextmanager
async def a_session(url: str):
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def _a_target_server(stack: Stack, sessions: int) -> Cluster:
    login = {"administratorLogin": USER, "administratorLoginPassword": PASSWORD}
    limits = {"maxConnections": sessions, "connectionsPerSecond": RATE}
    stack.put(TARGET_SERVER, {"location": "local", "properties": login | limits})
    cluster = _cluster(stack, TARGET_SERVER)
    async with a_session(cluster.superuser_url().reveal()) as connection:
        await connection.execute(f"alter system set max_connections = {SERVER_MAX_CONNECTIONS}")
    await cluster.stop(patience=timedelta(seconds=20))
    await cluster.start()
    return cluster


def _cluster(stack: Stack, server: str) -> Cluster:
    port = stack.get(server)["properties"]["endpoint"]["port"]
    for folder in (stack.folder / "clusters").iterdir():
        if (cluster := Cluster(folder)).port == port:
            return cluster
    raise SystemExit(f"no cluster of {server} listens on {port}")


async def _fill(server: Cluster, databases: Sequence[str], schemas: Sequence[str]) -> None:
    """As the administrator; the other databases are copies of the first."""
    first, *others = databases
    url = f"postgresql://{USER}:{quote(PASSWORD)}@127.0.0.1:{server.port}"
    async with a_session(f"{url}/postgres") as connection:
        await connection.execute(f"create database {first} template template0")
        async with a_session(f"{url}/{first}") as inside:
            for schema in schemas:
                await inside.execute(f"create schema {schema}")
                await inside.execute(f"create table {schema}.counter as select 0 as n")
        for name in others:
            await connection.execute(f"create database {name} template {first}")


def report(
    name: str,
    rounds: dict[str, list[float]],
    *,
    digits: int | None,
    goal: Any,
    note: str,
    **more: Any,
) -> None:
    """Prints the line of a benchmark on a fleet."""
    note = f"{note}; {RAISED}"
    print_line(summary(name, rounds, digits=digits, goal=goal, note=note, **more))
