"""How many tasks may wait at their hosts: what ends in a moment, and nothing where tasks are long."""

from uuid import UUID

from engine.pace import MOMENT, WINDOW, Pace
from engine.resources import Tree


def test_what_ends_in_a_moment_may_wait():
    pace = Pace()
    for number in range(10):
        pace.ended(50, number * WINDOW / 10)

    assert pace.ahead(WINDOW) == round(500 * MOMENT / WINDOW)


def test_nothing_waits_where_nothing_ends():
    pace = Pace()
    assert pace.ahead(0) == 0

    pace.ended(1000, 0)

    assert pace.ahead(WINDOW + 0.01) == 0


def test_hosts_share_what_may_wait_and_no_more_of_it_than_runs():
    tree = Tree(10)
    tree.see_hosts({UUID(int=1): 5, UUID(int=2): 5}, {})
    path = tree.path("s", None, "a")
    tree.limit(tree.server("s"), None)

    tree.reach_ahead(1000)
    taken = 0
    while tree.take(path) is None:
        taken += 1

    assert tree.instance.ahead == 10
    assert taken == 10  # the server has one host, of five slots and five ahead

    tree.reach_ahead(0)
    for _ in range(5):
        tree.release(path, tree.server("s").host.id)
    assert tree.take(path) is not None  # as many run as it has slots
