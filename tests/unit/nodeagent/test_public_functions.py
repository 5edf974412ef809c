import pytest

from engine import sql
from muster.core.errors import Internal
from muster.core.migrate import files
from nodeagent.public_functions import installed

FUNCTIONS = dict(files(sql.REPLACEABLE[0]))
PUBLIC = [name for name in FUNCTIONS if name.startswith("sp_")]


@pytest.mark.parametrize("file", FUNCTIONS)
def test_only_functions_of_schema_jobs_are_changed(file):
    made = installed(FUNCTIONS[file])

    assert (made != FUNCTIONS[file]) == (file in PUBLIC)
    assert made.count("exception when others") == (file in PUBLIC)


def test_declarations_are_inside_and_directives_stay_first():
    made = installed(FUNCTIONS["sp_stop_target.sql"])

    assert "as $$\n#variable_conflict use_column\nbegin\ndeclare\n" in made
    assert "\nend;\nexception when others then\n" in made


def test_a_public_function_that_can_not_be_changed_is_refused():
    with pytest.raises(Internal):
        installed(
            "create or replace function jobs.sp_x() returns void\nlanguage sql\nas $$ select 1 $$;"
        )
