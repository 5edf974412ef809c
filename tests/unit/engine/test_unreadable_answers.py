"""A server that lies to what lists and examines it is a fault of that server alone, in words."""

import pytest

from engine.targets.discovery import _translate_errors, name_in
from engine.targets.examination import GuardRow, RoleRow, SessionRow, _checked
from muster.core.errors import Unavailable

SESSION = {
    "server_version": 170_000,
    "username": "u",
    "standby": False,
    "creates_schemas": True,
    "tls": None,
}


@pytest.mark.parametrize(
    "error", [BufferError("unexpected trailing bytes"), NotImplementedError(), SystemError("Negative size"), KeyError("x")]
)  # fmt: skip
def test_whatever_asyncpg_is_led_into_is_a_fault_of_the_server(error):
    with pytest.raises(Unavailable, match="an answer that can't be read"), _translate_errors():
        raise error


def test_a_name_is_a_text():
    assert name_in({"name": "shop"}) == "shop"
    with pytest.raises(Unavailable, match="a name is null"):
        name_in({"name": None})


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (None, SessionRow),
        (SESSION | {"server_version": None}, SessionRow),
        (SESSION | {"server_version": "x"}, SessionRow),
        ({"name": None, "present": None}, RoleRow),
        ({"uses": None, "creates": True, "writes": True}, GuardRow),
    ],
)
def test_a_row_that_is_not_what_was_asked_is_a_fault(row, kind):
    with pytest.raises(Unavailable, match="an answer that can't be read"):
        _checked(row, kind)


def test_a_good_row_comes_through():
    assert _checked(SESSION, SessionRow) == SESSION
