"""How long a task waits for a session, and what it waits for when there was none."""

from datetime import UTC, datetime, timedelta

import pytest

from engine.host.session_wait import left, pause
from engine.pool.errors import Full
from tests.support.attempts import a_step, a_task

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
STEP = a_step("select 1", timeout=60)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def test_time_counts_from_its_beginning_and_is_whole_before():
    began = ago(45)

    found = left(STEP, began, NOW), left(STEP, None, NOW)

    assert found == (15, 60)


@pytest.mark.parametrize(
    ("waited", "seconds"), [(None, 1.0), (0.2, 1.0), (7.0, 7.0), (500.0, 30.0)]
)
@pytest.mark.parametrize("why", ["ServerFull", "ServerStarting"])
def test_a_server_that_refused_us_is_left_alone_for_as_long_as_it_did(waited, seconds, why):
    task = a_task(tried_at=None if waited is None else ago(waited))

    found = pause(Full("No.", why, "sorry"), STEP, task, NOW)

    assert found == (why, seconds, "sorry")


@pytest.mark.parametrize("began", ["first_start", "tried_at"])
@pytest.mark.parametrize("why", ["ServerConnections", "Connecting"])
def test_who_waited_for_us_until_its_time_was_over_says_so(began, why):
    task = a_task(**{began: ago(60)})

    found = pause(Full("No.", why), STEP, task, NOW)

    assert found == (why, 1.0, None)


@pytest.mark.parametrize(
    ("why", "times"),
    [
        ("ServerConnections", {}),
        ("ServerConnections", {"first_start": ago(59), "tried_at": ago(70)}),
        ("Connecting", {"tried_at": ago(10)}),
        ("NoHost", {"first_start": ago(90)}),
    ],
    ids=["not begun", "begun", "tried", "this host is stopping"],
)
def test_who_has_time_left_only_returns(why, times):
    task = a_task(**times)

    found = pause(Full("No.", why), STEP, task, NOW)

    assert found is None
