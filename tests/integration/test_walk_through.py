"""The page `docs/tutorial/jobs-in-sql.md` does what it says, statement by statement."""

import re
from pathlib import Path

import pytest

from muster.core.script import split
from tests.support.control_db import installed
from tests.support.definitions import SERVERS, a_definer

PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "jobs-in-sql.md"
SECTION = re.compile(r"^## (.+?)$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {
    title: [s.text for block in BLOCK.findall(text) for s in split(block).statements]
    for title, text in SECTION.findall(PAGE.read_text(encoding="utf-8"))
}


@pytest.fixture
async def admin(settings, db, targets):
    account = await installed(settings, db, targets)
    await account.execute(SERVERS)
    async with a_definer(account) as made:
        yield made


async def test_the_page_works_line_by_line(admin):
    async def section(title):
        return [await admin.rows(statement) for statement in PAGES[title]]

    await section("Who logs in at the targets")
    *_, groups, members = await section("Where jobs run")
    assert [row[0] for row in groups] == ["ServerGroup1"]
    kinds = {(row[2], row[3]) for row in members}
    assert kinds == {("Include", "SqlServer"), ("Exclude", "SqlDatabase")}

    _, first, second, steps = await section("What runs")
    assert (first[0][-1], second[0][-1]) == (1, 2)
    assert [row[1:4] for row in steps] == [(2, 1, "JobStep"), (2, 2, "Fill")]
    assert steps[1][-1] == 3

    *_, jobs = await section("When it runs")
    assert jobs == [("CreateTableTest", True, "30 3 * * MON-FRI", "Europe/Berlin")]

    started, running, _, over = await section("Start, look, stop")
    assert [(row[0], row[2], row[3]) for row in running] == [(started[0][0], 2, "Created")]
    assert over == [("CreateTableTest", "Canceled")]

    await section("Clean up")
    for view in ("jobs", "jobsteps", "job_executions", "target_groups", "target_group_members"):
        assert await admin.rows(f"select * from jobs.{view}") == []
