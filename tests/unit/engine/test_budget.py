"""How many sessions, and how quickly."""

import pytest

from engine.pool.budget import Budget, Contact, observed
from engine.model.server import TargetServer


def server(**more):
    given = {"server_id": "/s", "name": "s", "hosts": ("h",), "port": 5432, "ssl_mode": "disable"}
    return TargetServer(**(given | more))


CONTACT = Contact("/s", 180_000, 100, 9)


@pytest.mark.parametrize(
    ("most", "reserved", "others", "budget"),
    [
        (100, 3, 0, 9),
        (100, 3, 50, 4),
        (100, 3, 97, 2),
        (10, 3, 0, 2),
        (1000, 3, 0, 20),
        (5, 3, 50, 2),
    ],
)
def test_a_tenth_of_what_is_left_within_bounds(most, reserved, others, budget):
    assert observed(most, reserved, others) == budget


def test_all_but_one_is_for_hosts():
    budget = Budget()

    assert budget.size(server(), None, 0) == 1  # one goes ahead and asks
    assert budget.size(server(), CONTACT, 0) == 8
    assert budget.size(server(budget=5), None, 0) == 4
    assert budget.size(server(budget=5), CONTACT, 0) == 8
    assert budget.size(server(max_connections=3, budget=5), CONTACT, 0) == 2
    assert budget.size(server(max_connections=1), CONTACT, 0) == 1


def test_a_crowd_halves_and_time_gives_back():
    budget, big = Budget(), server(max_connections=21)
    budget.shrink(budget.size(big, None, 100), 100)

    assert budget.size(big, None, 100) == 10
    assert budget.grows_in(103) == 7
    assert budget.size(big, None, 109.9) == 10
    assert budget.size(big, None, 110) == 11
    assert budget.size(big, None, 155) == 15
    budget.shrink(budget.size(big, None, 155), 155)
    assert budget.size(big, None, 155) == 7
    assert budget.size(big, None, 155 + 130) == 20
    assert budget.grows_in(300) is None


def test_it_never_shrinks_to_nothing():
    budget, small = Budget(), server(max_connections=3)
    for moment in range(4):
        budget.shrink(budget.size(small, None, moment), moment)

    assert budget.size(small, None, 4) == 1


@pytest.mark.parametrize(
    ("rate", "many", "window"),
    [(None, 5, 1.0), (2.0, 2, 1.0), (0.5, 1, 2.0), (2.5, 2, 0.8), (100.0, 100, 1.0)],
)
def test_no_window_has_more_than_the_rate(rate, many, window):
    budget, slow = Budget(), server(connections_per_second=rate)
    opened, now = [], 0.0
    while len(opened) < 3 * many:
        pause = budget.opens_in(slow, now)
        if pause:
            now += pause
            continue
        budget.opened(now)
        opened.append(now)

    assert opened[:many] == [0.0] * many
    for first, after in zip(opened, opened[many:], strict=False):
        assert after - first >= window - 1e-9
    assert opened[-1] == pytest.approx(2 * window)
