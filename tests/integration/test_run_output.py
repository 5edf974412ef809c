"""A step with an output, from its start to its end: rows are written once, and no script is repeated for them."""

import asyncio

import pytest

from engine.host.main import JobTaskHost
from muster.core import failpoints
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

SCRIPT = "insert into t values ($(attempt)); select current_database()::text as name, n from generate_series(1, 3) n"
READ = "select current_database()::text as name, n from generate_series(1, 3) n"


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, account=account) as made:
        for name in made.databases:
            await made.query(name, "create table t (n int)")
        yield made


def output(fleet: Fleet, **more):
    """The arguments of sp_add_jobstep for an output in the fleet's first database."""
    given = {"type": "SqlDatabase", "server_name": "fleet", "database_name": fleet.databases[0], "table_name": "Rows"}
    return {f"output_{name}": value for name, value in (given | more).items()}


async def written(fleet: Fleet, columns="name, n", table='"Rows"'):
    rows = await fleet.query(0, f"select {columns} from {table} order by {columns}")
    return [tuple(row) for row in rows]


async def expected(fleet: Fleet):
    return sorted((name, n) for name in fleet.databases for n in (1, 2, 3))


async def test_the_rows_of_all_targets_are_in_the_table(fleet: Fleet):
    run = await fleet.run(SCRIPT, **output(fleet))

    assert await fleet.lifecycles(run) == {"Succeeded": 3}, await fleet.all(run)
    assert await written(fleet) == await expected(fleet)
    targets = await fleet.targets_of(run)
    assert {each["phase"] for each in targets} == {"output"}
    ids = await written(fleet, "distinct internal_execution_id")
    assert {id for (id,) in ids} == {each["target_execution_id"] for each in targets}
    index = "select indexdef from pg_indexes where indexname = 'IX_Rows_Internal_Execution_ID'"
    assert len(await fleet.query(0, index)) == 1
    assert list(fleet.folder.glob("*/*.rows")) == []
