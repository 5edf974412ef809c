"""A server that could not be listed when a step began is listed while it runs; its targets join the step."""

import contextlib
import re
from collections.abc import AsyncIterator

import pytest

from engine.core.main import Core
from engine.targets import server_retry
from tests.support.fleet import SERVER, Fleet, start_fleet
from tests.support.launching import until
from tests.support.tcp_proxy import TcpProxy, proxy_to

pytestmark = pytest.mark.newest

QUICK = {"initial_retry_interval_seconds": 1, "maximum_retry_interval_seconds": 1}
TARGETS = """
select x.ordinal, x.lifecycle, x.wave, d.target_type, d.server_name, d.database_name
  from jobs_internal.target_execution x
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.job_execution_id = $1 order by x.ordinal
"""


@contextlib.asynccontextmanager
async def a_fleet(settings, db, targets, tmp_path) -> AsyncIterator[tuple[Fleet, TcpProxy]]:
    """With a second server, `later`, that can't be reached; its databases are the same as those of `fleet`."""
    async with (
        proxy_to(targets.port) as proxy,
        start_fleet(settings, db, targets, tmp_path, databases=4) as fleet,
    ):
        proxy.cut()
        await fleet.root.execute(SERVER, "/later", "later", proxy.port, 20, 10_000)
        await fleet.call("sp_add_target_group", target_group_name="late")
        for server, database, more in (
            ("fleet", fleet.databases[0], {}),
            ("later", f"{fleet.databases[0][:-1]}*", {"refresh_credential_name": "fleet"}),
            ("later", fleet.databases[1], {"membership_type": "Exclude"}),
            ("later", "*", {"membership_type": "Exclude", "labels": "tier in (trial)"}),
        ):
            await fleet.call(
                "sp_add_target_group_member", target_group_name="late", target_type="SqlDatabase",
                server_name=server, database_name=database, **more,
            )  # fmt: skip
        labels = {fleet.databases[2]: {"tier": "trial"}}
        await fleet.root.execute(
            "update jobs_internal.server_directory set database_labels = $1 where name = 'later'",
            str(labels).replace("'", '"'),
        )
        yield fleet, proxy


@pytest.fixture
async def later(settings, db, targets, tmp_path, monkeypatch):
    monkeypatch.setattr(server_retry, "UNREACHABLE_TIMEOUT", 0.0)
    async with a_fleet(settings, db, targets, tmp_path) as made:
        yield made


async def unlisted_waits(fleet: Fleet, run) -> None:
    async def waits() -> bool:
        rows = await fleet.root.fetch(TARGETS, run)
        states = [(row["target_type"], row["lifecycle"]) for row in rows]
        return states == [("SqlDatabase", "Succeeded"), ("SqlServer", "WaitingForRetry")]

    await until(waits)


async def test_databases_of_a_server_that_comes_back_join_the_running_step(later):
    fleet, proxy = later
    await fleet.job("late", "select 1", group="late", **QUICK)
    run = await fleet.start("late")
    await unlisted_waits(fleet, run)  # after its first attempt
    # The step keeps the rules that it began with.
    await fleet.root.execute("delete from jobs_internal.target_group_member where position > 2")

    proxy.restore()
    lifecycle = await fleet.ended(run)

    # Without the database that is excluded by its name, and that whose labels are excluded.
    rows = [tuple(row)[1:] for row in await fleet.root.fetch(TARGETS, run)]
    databases = fleet.databases
    assert lifecycle == "Succeeded"
    assert rows == [
        ("Succeeded", 1, "SqlDatabase", "fleet", databases[0]),
        ("Succeeded", 1, "SqlDatabase", "later", databases[0]),
        ("Succeeded", 1, "SqlDatabase", "later", databases[3]),
    ]
    (step,) = await fleet.steps(run)
    listed = r"Listed while the step ran: later \(attempts: \d, targets: 2\)\."
    assert re.fullmatch(rf"3 of 3 targets succeeded\. {listed}", step["last_message"])


async def test_a_core_that_starts_meanwhile_lists_the_server_and_a_later_wave_takes_its_databases(
    later,
):
    fleet, proxy = later
    rollout = {"rollout": {"waves": [2, "100%"]}}
    await fleet.job("late", "select 1", group="late", options=rollout, **QUICK)
    run = await fleet.start("late")
    await unlisted_waits(fleet, run)

    await fleet.kill(next(each for each in fleet.alive if isinstance(each.living, Core)))
    proxy.restore()
    await fleet.core()
    lifecycle = await fleet.ended(run)

    assert lifecycle == "Succeeded"
    rows = await fleet.root.fetch(TARGETS, run)
    assert [row["database_name"] for row in rows] == [
        fleet.databases[0], fleet.databases[0], fleet.databases[3],
    ]  # fmt: skip
    assert [row["ordinal"] for row in rows] == [1, 3, 4]


async def test_a_server_that_stays_away_fails_alone_after_the_retries(later):
    fleet, _ = later
    await fleet.job("late", "select 1", group="late", retry_attempts=1, **QUICK)

    run = await fleet.start("late")

    assert await fleet.ended(run) == "Failed"
    rows = await fleet.root.fetch(TARGETS, run)
    assert [(row["target_type"], row["lifecycle"]) for row in rows] == [
        ("SqlDatabase", "Succeeded"), ("SqlServer", "Failed"),
    ]  # fmt: skip
    assert len([task for task in await fleet.tasks(run) if task["ordinal"] == 2]) == 2


@pytest.mark.deep
async def test_a_further_attempt_of_the_run_lists_the_server_before_it_is_tried(later):
    fleet, proxy = later
    await fleet.job("late", "select 1", group="late", retry_attempts=0)
    rules = {"enabled": True, "backoffSeconds": [0, 1]}
    await fleet.call("sp_update_job", job_name="late", run_attempts=rules)
    run = await fleet.start("late")

    async def second_attempt_failed() -> bool:
        look = "select count(*) from jobs.run_attempts where lifecycle = 'Failed'"
        return await fleet.root.fetchval(look) >= 2

    await until(second_attempt_failed)
    proxy.restore()

    assert await fleet.ended(run) == "Succeeded"
    rows = [tuple(row)[3:] for row in await fleet.root.fetch(TARGETS, run)]
    databases = fleet.databases
    assert rows == [
        ("SqlDatabase", "fleet", databases[0]),
        ("SqlDatabase", "later", databases[0]),
        ("SqlDatabase", "later", databases[3]),
    ]
