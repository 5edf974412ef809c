"""Pauses between tries."""

from engine.process.backoff import Backoff


def pauses(backoff: Backoff, number: int) -> list[float]:
    return [backoff.next().total_seconds() for _ in range(number)]


def test_each_pause_is_twice_the_one_before_up_to_the_longest():
    assert pauses(Backoff(1.0, 5.0), 5) == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_the_next_pause_is_known_before_it_begins():
    backoff = Backoff(1.0, 5.0)
    backoff.next()
    assert backoff.seconds == 2.0
    assert backoff.next().total_seconds() == 2.0


def test_a_reset_begins_with_the_first_pause():
    backoff = Backoff(1.0, 5.0)
    pauses(backoff, 3)
    backoff.reset()
    assert pauses(backoff, 2) == [1.0, 2.0]
