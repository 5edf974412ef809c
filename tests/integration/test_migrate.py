import asyncio
import sys

import asyncpg
import pytest

from muster.core import migrate as module
from muster.core.errors import Internal
from muster.core.migrate import migrate


@pytest.fixture
async def connect(postgres):
    name = await asyncio.to_thread(postgres.create_database, "template0")
    opened = []

    async def one():
        opened.append(await asyncpg.connect(postgres.url(name)))
        return opened[-1]

    yield one
    for connection in opened:
        await connection.close()
    await asyncio.to_thread(postgres.drop_database, name)


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "0001_a.sql").write_text("-- expand: first\ncreate table a (x int);")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("some_migrations", None)


async def test_six_at_once_apply_each_file_once(connect):
    connections = [await connect() for _ in range(6)]

    applied = await asyncio.gather(*(migrate(c, "workflows.migrations") for c in connections))

    names = [name for name, _ in module.scripts("workflows.migrations")]
    assert sorted(sum(applied, [])) == names
    assert await migrate(connections[0], "workflows.migrations") == []


async def test_a_new_file_is_applied_and_an_edited_one_refused(connect, package):
    connection = await connect()
    assert await migrate(connection, "some_migrations") == ["0001_a.sql"]
    (package / "0002_b.sql").write_text("-- expand: second\ncreate table b (x int);")
    assert await migrate(connection, "some_migrations") == ["0002_b.sql"]

    (package / "0001_a.sql").write_text("-- expand: first\ncreate table a (y int);")
    with pytest.raises(Internal, match="edited"):
        await migrate(connection, "some_migrations")


async def test_a_broken_file_leaves_nothing_behind(connect, package):
    connection = await connect()
    (package / "0002_b.sql").write_text("-- expand: x\ncreate table b (x int); select 1 / 0;")

    with pytest.raises(asyncpg.DivisionByZeroError):
        await migrate(connection, "some_migrations")

    assert await connection.fetchval("select to_regclass('b')") is None
    assert await connection.fetchval("select count(*) from migration") == 1


@pytest.mark.parametrize(
    ("name", "text"), [("0003_x.sql", "-- expand: a gap"), ("0002_x.sql", "select 1")]
)
def test_numbers_have_no_gap_and_a_phase_is_said(package, name, text):
    (package / name).write_text(text)
    with pytest.raises(Internal, match="expected number"):
        module.scripts("some_migrations")
