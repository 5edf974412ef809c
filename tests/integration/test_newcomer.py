"""The road of a new user by commands alone: an own PostgreSQL, an account, a job that is edited, fails, is fixed and rerun; then all is deleted."""

import asyncio
import secrets

import asyncpg
import pytest

from tests.support.command_line import CommandLine
from tests.support.postgres import Postgres, drop
from tests.support.stack import muster_up

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.timeout(420)]

TENANTS = 3
ADD = "alter table orders add column if not exists total numeric"
FILL = "update orders set total = price * 2 where total is null"


class Home:
    """Databases of the user, on a server that Muster has not made."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.mark = secrets.token_hex(3)
        self.tenants = [f"tenant_{self.mark}_{number}" for number in range(1, TENANTS + 1)]
        self.jobs = f"jobs_{self.mark}"

    def prepare(self) -> None:
        asyncio.run(self._prepare())

    def clear(self) -> None:
        asyncio.run(self._clear())

    def totals(self) -> list[int]:
        return asyncio.run(self._totals())

    async def _prepare(self) -> None:
        for name in self.tenants:
            await self._run("postgres", f'create database "{name}"')
        for name in [self.tenants[0], self.tenants[2]]:  # the second one lacks its table
            await self._run(
                name, "create table orders (price numeric); insert into orders values (1), (2)"
            )

    async def _totals(self) -> list[int]:
        return [
            await self._run(name, "select sum(total)::int from orders") for name in self.tenants
        ]

    async def _clear(self) -> None:
        connection = await self._connect("postgres", self.server.root)
        try:
            for name in [*self.tenants, self.jobs]:
                await drop(connection, name)
        finally:
            await connection.close()

    async def _run(self, database: str, statement: str):
        connection = await self._connect(database, self.server.administrator)
        try:
            if statement.startswith("select"):
                return await connection.fetchval(statement)
            return await connection.execute(statement)
        finally:
            await connection.close()

    async def _connect(self, database: str, role) -> asyncpg.Connection:
        return await asyncpg.connect(self.server.url(database, role))


@pytest.fixture
def home(targets):
    made = Home(targets)
    made.prepare()
    yield made
    made.clear()


@pytest.fixture
def muster(home, tmp_path, monkeypatch, capsys):
    """As the reader of README has it; asked without a terminal, so that what deletes needs --yes."""
    (tmp_path / "password").write_text(home.server.administrator.password)
    with muster_up(tmp_path, MUSTER_TARGET_ALLOW=f"127.0.0.1:{home.server.port}") as stack:
        yield CommandLine(monkeypatch, capsys, stack.url, stack.token)


def test_a_new_user_gets_from_an_own_server_to_a_rerun_and_back(muster, home, tmp_path):
    user, password = home.server.administrator.name, ["--password-file", str(tmp_path / "password")]

    # A server, checked, with an account and a login
    muster(
        "server", "add", "eu1", "--host", "127.0.0.1", "--port", str(home.server.port), "--ssl-mode", "disable",
        "--admin", user, "--admin-password-file", str(tmp_path / "password"),
        "--subscription", "mine", "--resource-group", "fleet", "--create",
    )  # fmt: skip
    assert "reachable" in muster("server", "check", "eu1")
    muster("account", "create", "main", "--database", f"eu1/{home.jobs}")
    muster("credential", "set", "login", "--username", user, *password)
    assert "eu1" in muster("credential", "test", "login")
    pattern = f"eu1/tenant_{home.mark}_*"
    muster("group", "create", "tenants", "--database", pattern, "--credential", "login")
    resolved = muster("group", "resolve", "tenants")
    assert all(name in resolved for name in home.tenants)

    # A job with two steps, edited, paused, resumed
    created = muster("job", "create", "refresh", "-g", "tenants", "-c", "select 1", "--step", "add")
    assert "muster job start refresh" in created
    muster("step", "add", "refresh", "fill", "-g", "tenants", "-c", FILL)
    muster(
        "step",
        "update",
        "refresh",
        "add",
        "-c",
        ADD,
        "--lock-timeout",
        "2s",
        "--retry-attempts",
        "1",
    )
    muster(
        "job",
        "update",
        "refresh",
        "--description",
        "Totals",
        "--cron",
        "0 3 * * *",
        "--time-zone",
        "Europe/Berlin",
    )
    assert muster.rows("step", "list", "refresh") == [
        {"step": "1", "name": "add", "group": "tenants", "credential": "", "script": ADD},
        {"step": "2", "name": "fill", "group": "tenants", "credential": "", "script": FILL},
    ]
    muster("job", "pause", "refresh")
    paused = muster("job", "start", "refresh", code=1)
    assert "paused" in paused and "muster job resume refresh" in paused
    muster("job", "resume", "refresh")

    # A run with a target that fails, the fix, and a rerun of what failed
    failed = muster("job", "start", "refresh", "--wait", code=2)
    assert "muster run errors" in failed and "--failed" in failed
    errors = muster("run", "errors", "refresh")
    assert "42P01" in errors and home.tenants[1] in errors
    [row] = muster.rows("run", "list", "--lifecycle", "failed", "--since", "1h")
    assert (row["job"], row["targets"], row["lifecycle"]) == ("refresh", "2 of 3", "Failed")
    [row] = muster.rows("run", "targets", "refresh", "--lifecycle", "failed")
    assert row["database"] == home.tenants[1]
    muster(
        "exec", "--target", f"eu1/{home.tenants[1]}", "--credential", "login", "--write", "--yes", "--expect-targets", "1",
        "-c", "create table orders (price numeric); insert into orders values (1), (2)",
    )  # fmt: skip
    rerun = muster("run", "rerun", "refresh", "--failed", "--wait")
    assert "succeeded" in rerun
    again = muster("job", "start", "refresh", "--wait")
    assert "6 of 6" in again
    assert home.totals() == [6, 6, 6]
    runs = muster.rows("job", "history", "refresh")
    assert [row["targets"] for row in runs] == ["3 of 3", "1 of 1", "2 of 3"]
    assert runs[1]["origin"].startswith(f"rerun of {runs[2]['run'][:8]} by ")
    [job] = [row for row in muster.rows("job", "list") if row["name"] == "refresh"]
    assert (job["last_run"], job["version"]) == ("Succeeded", "3") and job["next_run"]

    # Everything is deleted
    muster("step", "remove", "refresh", "fill", "--yes")
    muster("job", "delete", "refresh", "--yes")
    muster("group", "delete", "tenants", "--yes")
    muster("credential", "delete", "login", "--yes")
    muster("account", "delete", "main", "--yes")
    muster("server", "delete", "eu1", "--yes")
    muster("resource-group", "delete", "fleet", "--yes")
    muster("subscription", "delete", "mine", "--yes")
    assert muster.rows("server", "list") == []
    assert home.totals() == [6, 6, 6], "the user's data stays"
