import re
import sys
from pathlib import Path

import pytest

from engine import sql
from engine.db.membership import OLDEST_SCHEMA
from muster.core.errors import Internal
from muster.core.migrate import files, scripts
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.command_table import COMMANDS

ROOT = Path(__file__).parents[3]
TEXTS = {
    path: path.read_text(encoding="utf-8")
    for package in ("engine", "nodeagent")
    for path in (ROOT / package).rglob("*")
    if path.suffix in {".sql", ".py"} and path.name != "schema.sql"
}
FUNCTIONS, VIEWS = (dict(files(package)) for package in sql.REPLACEABLE)


@pytest.mark.parametrize("file", FUNCTIONS)
def test_a_function_file_holds_the_function_of_its_name(file):
    name = file.removesuffix(".sql")
    text = FUNCTIONS[file]
    schema = "jobs" if name.startswith("sp_") else "jobs_internal"

    assert f"create or replace function {schema}.{name}(" in text
    assert "security definer\nset search_path = jobs, jobs_internal, pg_temp\n" in text
    assert f"comment on function {schema}.{name}(" in text


@pytest.mark.parametrize("file", [file for file in FUNCTIONS if not file.startswith("sp_")])
def test_an_internal_function_has_a_caller(file):
    name = file.removesuffix(".sql")
    call = re.compile(rf"\b{name}\(|function=\"{name}\"")
    assert any(call.search(text) for path, text in TEXTS.items() if path.name != file)


@pytest.mark.parametrize("file", VIEWS)
def test_a_view_file_holds_the_view_of_its_name(file):
    name = file.removesuffix(".sql")

    assert re.search(rf"create or replace view jobs(_internal)?\.{name} as\n", VIEWS[file])


def test_the_version_is_the_number_of_the_newest_migration():
    assert ExpectedSchema().version == len(scripts(sql.MIGRATIONS)) > 0


def test_the_engine_accepts_the_schema_that_is_installed():
    assert ExpectedSchema().version >= OLDEST_SCHEMA


def test_every_function_of_the_catalogue_is_for_the_agent():
    wanted = {(spec.function, "agent") for spec in COMMANDS.values() if spec.function}

    assert wanted <= set(ExpectedSchema().audiences())


def test_a_function_without_an_audience_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "some_functions"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "some_function.sql").write_text("-- for: everybody\nselect 1")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Internal, match="some_function"):
        ExpectedSchema(replaceable=("some_functions",)).audiences()

    sys.modules.pop("some_functions", None)
