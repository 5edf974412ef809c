"""Which texts may be a verify query."""

import pytest

from muster.core.script import analyse
from muster.core.verify_query import MAX_LENGTH, REFUSED, problems
from tests.support.verify_queries import QUERIES


@pytest.mark.parametrize(("text", "taken"), QUERIES.items())
def test_a_verify_query_is_one_statement_that_only_reads(text, taken):
    assert not list(problems(analyse(text))) == taken


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select 1; select 2", "has 2 statements"),
        ("delete from t", "DELETE is no query"),
        ("with a as (update t set v = 1 returning 1) select * from a", "the word UPDATE"),
        ("select from from", "grammar of PostgreSQL 18 refuses"),
        (f"select '{'x' * MAX_LENGTH}'", f"{MAX_LENGTH} can be"),
    ],
)
def test_the_message_says_why(text, message):
    (problem,) = problems(analyse(text))

    assert problem.code == REFUSED
    assert message in problem.message


def test_what_is_wrong_with_any_script_is_wrong_with_a_verify_query():
    (problem,) = problems(analyse("select $(nothing)"))

    assert problem.code == "UnknownScriptVariable"
