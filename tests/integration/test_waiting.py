"""Whoever waits does so within the step's time, and tells in the end what it waited for."""

import pytest

from tests.support.fleet import start_fleet
from tests.support.refusing import refusing

pytestmark = [pytest.mark.newest, pytest.mark.targets]

HANG_UP = "select pg_terminate_backend(pg_backend_pid())"


@pytest.mark.parametrize(
    ("sqlstate", "said", "reason"),
    [
        ("53300", "sorry, too many clients already", "ServerFull"),
        ("57P03", "the database system is starting up", "ServerStarting"),
    ],
)
async def test_a_server_that_never_lets_us_in_is_quoted_at_the_end(
    settings, db, account, targets, tmp_path, sqlstate, said, reason
):
    async with (
        refusing(sqlstate, said) as port,
        start_fleet(settings, db, targets, tmp_path, databases=1, account=account) as fleet,
    ):
        await fleet.root.execute("update jobs_internal.server_directory set port = $1", port)

        run = await fleet.run("select 1", step_timeout_seconds=2)

        (target,) = await fleet.targets_of(run)
        assert (target["lifecycle"], target["end_reason"]) == ("TimedOut", reason)
        assert target["last_message"] == f"Timed out before it started: {said}. And more"
        assert (target["attempts"], target["start_time"], await fleet.tasks(run)) == (0, None, [])


async def test_a_retry_does_not_wait_longer_for_a_session_than_its_step_has_time(
    settings, db, account, targets, tmp_path
):
    few = {"databases": 1, "rate": 1 / 3600}  # one in an hour
    async with start_fleet(settings, db, targets, tmp_path, account=account, **few) as fleet:
        run = await fleet.run(HANG_UP, step_timeout_seconds=4, initial_retry_interval_seconds=3)

        (target,), (task,) = await fleet.targets_of(run), await fleet.tasks(run)
        assert (task["end_reason"], target["attempts"]) == ("ConnectionLost", 1)
        assert (target["lifecycle"], target["end_reason"]) == ("TimedOut", "TimedOut")
        assert 4 <= (target["end_time"] - target["start_time"]).total_seconds() < 6
