import asyncpg
import pytest

from muster.core.errors import Conflict, Fault, Forbidden, Internal, NotFound, Unavailable
from nodeagent.sqlstates import meaning, told_as_faults


@pytest.mark.parametrize(
    ("sqlstate", "kind"),
    [
        ("42501", Forbidden),
        ("3F000", NotFound),
        ("42703", Conflict),
        ("23505", Conflict),
        ("40P01", Unavailable),
        ("53300", Unavailable),
        ("57P01", Unavailable),
        ("XX000", Internal),
        ("", Internal),
    ],
)
def test_each_state_has_its_kind(sqlstate, kind):
    assert meaning(sqlstate)[0] is kind


def test_a_stranger_s_words_are_short_and_printable():
    with pytest.raises(Fault) as caught, told_as_faults():
        raise asyncpg.UndefinedTableError("no\x1b[31m table " + "x" * 9000)

    assert caught.value.code == "ControlSchemaMissing"
    assert len(caught.value.message) < 600
    assert caught.value.message.isprintable()


def test_a_limit_is_told_by_who_set_it():
    with pytest.raises(TimeoutError), told_as_faults():
        raise TimeoutError
