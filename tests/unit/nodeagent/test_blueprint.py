import re
import sys

import pytest

from engine import sql
from muster.core.errors import Internal
from muster.core.migrate import files, scripts
from nodeagent.blueprint import Blueprint
from nodeagent.protocol import COMMANDS

FUNCTIONS, VIEWS = (dict(files(package)) for package in sql.REPLACEABLE)


@pytest.mark.parametrize("file", FUNCTIONS)
def test_a_function_file_holds_the_function_of_its_name(file):
    name = file.removesuffix(".sql")
    text = FUNCTIONS[file]
    schema = "jobs" if name.startswith("sp_") else "jobs_internal"

    assert f"create or replace function {schema}.{name}(" in text
    assert "security definer\nset search_path = jobs, jobs_internal, pg_temp\n" in text
    assert f"comment on function {schema}.{name}(" in text
    assert schema == "jobs" or re.search(r"_v\d+$", name)


@pytest.mark.parametrize("file", VIEWS)
def test_a_view_file_holds_the_view_of_its_name(file):
    name = file.removesuffix(".sql")

    assert re.search(rf"create or replace view jobs(_internal)?\.{name} as\n", VIEWS[file])


def test_the_version_is_the_number_of_the_newest_migration():
    assert Blueprint().version == len(scripts(sql.MIGRATIONS)) > 0


def test_every_function_of_the_catalogue_is_for_the_agent():
    wanted = {(spec.function, "agent") for spec in COMMANDS.values() if spec.function}

    assert wanted <= set(Blueprint().audiences())


def test_a_function_without_an_audience_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "some_functions"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "f_v1.sql").write_text("-- for: everybody\nselect 1")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(Internal, match="f_v1"):
        Blueprint(replaceable=("some_functions",)).audiences()

    sys.modules.pop("some_functions", None)
