"""The page `docs/tutorial/jobs-in-sql.md` does what it says, line by line, on a fresh installation."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from muster.core.script import split
from tests.support.stack import muster_up

pytestmark = pytest.mark.newest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial" / "jobs-in-sql.md").read_text("utf-8")
SECTION = re.compile(r"^## (.+?)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = {title: SQL.findall(text) for title, text in SECTION.findall(PAGE)}
ENOUGH = 600  # looks, at least 30 s


class Reader:
    """Types the statements of a section into the control database, as psql would."""

    def __init__(self, connection: asyncpg.Connection, sealed: str) -> None:
        self.connection = connection
        self.sealed = sealed

    async def section(self, title: str) -> list[list[tuple]]:
        return [await self.rows(each) for each in self.statements(title)]

    def statements(self, title: str) -> list[str]:
        blocks = (block.replace(":'sealed'", f"'{self.sealed}'") for block in SECTIONS[title])
        return [each.text for block in blocks for each in split(block).statements]

    async def rows(self, statement: str) -> list[tuple]:
        return [tuple(row) for row in await self.connection.fetch(statement)]

    async def repeated_until(self, statement: str, lifecycle: str) -> list[tuple]:
        """As the page tells its reader to do."""
        for _ in range(ENOUGH):
            rows = await self.rows(statement)
            if lifecycle in rows[0]:
                return rows
            await asyncio.sleep(0.05)
        raise AssertionError(f"{statement} never showed {lifecycle}: {rows}")


@pytest.fixture
def installation(tmp_path):
    """What the reader has after the first block: `muster up` in another terminal, a server, an account."""
    with muster_up(tmp_path) as stack:
        own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PWD": str(tmp_path)}
        where = {"MUSTER_URL": stack.url, "MUSTER_TOKEN": stack.token}
        block = "set -e\n" + SHELL.findall(PAGE)[0].replace("export PATH", "# export PATH")
        done = subprocess.run(
            ["bash", "-c", block], cwd=tmp_path, env=os.environ | own | where, capture_output=True, text=True
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        [row] = [line.split() for line in done.stdout.splitlines() if line.startswith("eu1 ")][-1:]
        yield tmp_path, int(row[2])


@pytest.fixture
async def reader(installation):
    folder, port = installation
    password = (folder / "eu1.password").read_text().strip()
    connection = await asyncpg.connect(
        host="127.0.0.1", port=port, user="eu_admin", password=password, database="jobs"
    )
    yield Reader(connection, (folder / "eu1.sealed").read_text().strip())
    await connection.close()


async def test_the_page_works_line_by_line(reader):
    await reader.section("A server and an account to try it on")
    await reader.section("Logins at targets")
    *_, groups, members = await reader.section("Where jobs run")
    assert [row[0] for row in groups] == ["ServerGroup1"]
    kinds = {(row[2], row[3]) for row in members}
    assert kinds == {("Include", "SqlServer"), ("Exclude", "SqlDatabase")}

    _, first, second, steps = await reader.section("Jobs and steps")
    assert (first[0][-1], second[0][-1]) == (1, 2)
    assert [row[1:4] for row in steps] == [(2, 1, "JobStep"), (2, 2, "Fill")]
    assert steps[1][-1] == 3

    start, look, targets = reader.statements("Start a job and read its results")
    [(started,)] = await reader.rows(start)
    [run] = await reader.repeated_until(look, "Succeeded")
    assert run[:3] == (started, 2, "Succeeded")
    assert [(row[0], row[2], row[3]) for row in await reader.rows(targets)] == [
        (step, f"tenant_{n}", "Succeeded") for step in ("JobStep", "Fill") for n in (1, 2, 3)
    ]

    *_, jobs = await reader.section("Schedule it")
    assert jobs == [("CreateTableTest", True, "30 3 * * MON-FRI", "Europe/Berlin")]

    *before, look = reader.statements("Stop")
    for statement in before:
        await reader.rows(statement)
    await reader.repeated_until(look, "Canceled")

    await reader.section("Clean up")
    for view in ("jobs", "jobsteps", "target_groups", "target_group_members"):
        assert await reader.rows(f"select * from jobs.{view}") == []
