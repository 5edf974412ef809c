import pytest

from muster.core.sql import Queries


def test_a_query_is_the_text_behind_its_name():
    queries = Queries("fsm.sql", "signal.sql")

    assert queries.send_signal.startswith("-- Waits durably")
    assert not queries.send_signal.endswith(";")
    assert "send_signal" in dict(queries.items())


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="known: .*send_signal"):
        _ = Queries("fsm.sql", "signal.sql").sent_signal


def test_a_name_stands_for_one_query():
    with pytest.raises(ValueError, match="defined twice"):
        Queries("fsm.sql", "signal.sql", "signal.sql")
