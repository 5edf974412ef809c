"""What the directory says of a server."""

from engine.model.group_document import Server


def a_server(**more):
    given = {"server_id": "/s", "name": "s", "hosts": ("a", "b"), "port": 5432}
    return Server(ssl_mode="disable", **given, **more)


def test_only_a_server_that_muster_made_has_addresses_of_our_own():
    assert a_server().own == frozenset()
    assert a_server(embedded=True).own == {("a", 5432), ("b", 5432)}
