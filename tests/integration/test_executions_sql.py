"""Starting, stopping, reading and forgetting runs, by psql and by the agent."""

import asyncio
from json import loads
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from tests.support.executions import (
    PLAN,
    Job,
    a_job,
    a_run,
    a_session,
    a_step,
    end,
    some_targets,
)

NOBODY = UUID(int=0)
START = "select jobs_internal.start_job($1, $2, null)::text"


LEDGER = """
insert into jobs_internal.target_ledger (job_id, content_hash, target_id, lifecycle, job_execution_id, step_id, ended_at)
values ($1, '', gen_random_uuid(), 'Succeeded', gen_random_uuid(), 1, now())
"""


async def refused(statement, *args, session) -> asyncpg.PostgresError:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await session.fetch(statement, *args)
    return caught.value


async def a_run_of(owner, run) -> asyncpg.Record:
    return await owner.fetchrow(
        "select * from jobs_internal.job_execution where job_execution_id = $1", run
    )


async def test_a_start_pins_the_version_and_says_who_and_when(owner):
    job = await a_job(owner)

    run = await a_run(owner, job)

    row = await a_run_of(owner, run)
    assert (row["job_id"], row["job_version"], row["lifecycle"]) == (job.id, 1, "Created")
    assert (row["origin"], row["actor"], row["door"]) == ("caller", "postgres", "psql")
    assert row["run_day"] == row["create_time"].astimezone(UTC).date()
    await owner.execute("update jobs_internal.job set version = 7")
    assert (await a_run_of(owner, run))["job_version"] == 1
    audit = await owner.fetchrow("select * from jobs_internal.audit where action = 'sp_start_job'")
    assert audit["detail"] == f'{{"job_name": "nightly", "job_execution_id": "{run}"}}'


async def test_the_name_is_found_without_regard_to_case(owner):
    await a_job(owner, "Nightly Run")

    assert await a_run(owner, Job(NOBODY, "nightly RUN", NOBODY))


async def test_the_same_id_again_is_the_same_run_and_of_another_job_a_conflict(owner):
    first, other = await a_job(owner), await a_job(owner, "other")
    chosen = uuid4()

    assert await a_run(owner, first, chosen) == chosen
    await owner.execute("update jobs_internal.job set paused = true")
    assert await a_run(owner, first, chosen) == chosen

    assert await owner.fetchval("select count(*) from jobs_internal.job_execution") == 1
    assert (
        await owner.fetchval(
            "select count(*) from jobs_internal.audit where action = 'sp_start_job'"
        )
        == 1
    )
    error = await refused("select jobs.sp_start_job($1, $2)", other.name, chosen, session=owner)
    assert (error.sqlstate, error.column_name) == ("MU017", "job_execution_id")


async def test_two_starts_with_one_id_at_once_make_one_run(account, owner):
    job, chosen = await a_job(owner), uuid4()

    async def start():
        async with a_session(account) as session:
            return await a_run(session, job, chosen)

    assert await asyncio.gather(*(start() for _ in range(8))) == [chosen] * 8

    assert await owner.fetchval("select count(*) from jobs_internal.job_execution") == 1
    assert (
        await owner.fetchval(
            "select count(*) from jobs_internal.audit where action = 'sp_start_job'"
        )
        == 1
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("update jobs_internal.instance set paused = true", "the account is paused"),
        ("update jobs_internal.instance set draining = true", "the account is being deleted"),
        ("update jobs_internal.job set paused = true", 'job "nightly" is paused'),
        ("delete from jobs_internal.job_step", 'job "nightly" has no steps'),
    ],
)
async def test_a_start_is_refused_with_the_reason(owner, change, says):
    await a_job(owner)
    await owner.execute(change)

    error = await refused("select jobs.sp_start_job('nightly')", session=owner)

    assert error.sqlstate == "MU013"
    assert str(error).startswith(says)


async def test_a_job_that_is_not_there_or_has_no_version_yet_is_not_started(owner):
    await a_job(owner, "empty", steps=0)
    await a_job(owner, "gone")
    await owner.execute("update jobs_internal.job set deleted_at = now() where name = 'gone'")

    for name, state in (("empty", "MU013"), ("gone", "MU010"), ("never", "MU010"), (None, "MU010")):
        error = await refused("select jobs.sp_start_job($1)", name, session=owner)
        assert error.sqlstate == state


async def test_the_engine_is_told_without_a_word(account, owner):
    heard = []
    listener = await account.connect("engine")
    for channel in ("muster_execution", "muster_pause"):
        await listener.add_listener(channel, lambda *said: heard.append(said[2:]))
    job = await a_job(owner)

    run = await a_run(owner, job)
    await owner.execute("select jobs.sp_stop_job($1)", run)
    await owner.execute("select jobs.sp_pause()")
    while len(heard) < 3:
        await listener.execute("select 1")

    assert heard == [("muster_execution", ""), ("muster_execution", ""), ("muster_pause", "")]
    await listener.close()


async def test_a_stop_before_the_first_step_ends_the_run_at_once(owner):
    run = await a_run(owner, await a_job(owner))
    error = await refused("select jobs.sp_stop_job($1, $2)", run, "x" * 1001, session=owner)
    assert (error.sqlstate, str(error)) == ("MU012", "reason has at most 1000 characters")

    await owner.execute("select jobs.sp_stop_job($1, 'a mistake')", run)

    row = await a_run_of(owner, run)
    assert (row["lifecycle"], row["end_time"]) == ("Canceled", row["cancel_requested_at"])
    said = await owner.fetchrow("select * from jobs.job_cancellations")
    assert (said["job_execution_id"], said["job_name"]) == (run, "nightly")
    assert (said["requested_by"], said["door"], said["reason"]) == ("postgres", "psql", "a mistake")
    assert (said["completed_at"], said["needed"]) == (row["end_time"], "nothing")
    error = await refused("select jobs.sp_stop_job($1)", run, session=owner)
    assert (error.sqlstate, str(error)) == ("MU013", f"execution {run} has finished: Canceled")


async def test_a_stop_of_what_has_begun_is_a_wish(owner):
    run = await a_run(owner, await a_job(owner))
    await a_step(owner, run)

    await owner.execute("select jobs.sp_stop_job($1)", run)
    first = (await a_run_of(owner, run))["cancel_requested_at"]
    await owner.execute("select jobs.sp_stop_job($1)", run)

    row = await a_run_of(owner, run)
    assert (row["lifecycle"], row["end_time"], row["cancel_requested_at"]) == (
        "Created",
        None,
        first,
    )
    said = await owner.fetch("select completed_at, needed from jobs.job_cancellations")
    assert [tuple(each) for each in said] == [(None, None)] * 2


async def test_stopping_what_is_not_there_says_so(owner):
    error = await refused("select jobs.sp_stop_job($1)", uuid4(), session=owner)

    assert error.sqlstate == "MU010"


async def test_pause_holds_starts_back_until_resume(owner):
    job = await a_job(owner)

    await owner.execute("select jobs.sp_pause()")
    error = await refused("select jobs.sp_start_job('nightly')", session=owner)
    await owner.execute("select jobs.sp_resume()")

    assert error.sqlstate == "MU013"
    assert await a_run(owner, job)
    actions = await owner.fetch(
        "select action from jobs_internal.audit where door = 'psql' order by audit_id"
    )
    assert [row[0] for row in actions] == ["sp_pause", "sp_resume", "sp_start_job"]


async def ended(owner, job, *, days_ago: int = 0) -> UUID:
    run = uuid4()
    at = datetime.now(UTC) - timedelta(days=days_ago)
    await owner.execute("select jobs_internal.ensure_partitions($1)", at.date())
    await owner.execute(
        "insert into jobs_internal.job_execution"
        " (job_execution_id, job_id, job_version, run_day, create_time, origin, actor, door)"
        " values ($1, $2, 1, $3, $4, 'caller', 'x', 'psql')",
        run, job.id, at.date(), at,
    )  # fmt: skip
    await some_targets(owner, job, run, 3)
    await end(owner, run)
    return run


async def counts(owner) -> list[int]:
    tables = ("job_execution", "step_execution", "target_execution", "snapshot", "snapshot_target")
    return [await owner.fetchval(f"select count(*) from jobs_internal.{t}") for t in tables]


async def test_purging_forgets_what_is_over_and_nothing_else(owner):
    job, other = await a_job(owner), await a_job(owner, "other")
    await ended(owner, job)
    await ended(owner, other)
    live = await a_run(owner, job)

    await owner.execute("select jobs.sp_purge_jobhistory(job_name => 'NIGHTLY')")

    assert await counts(owner) == [2, 1, 3, 1, 3]
    assert await a_run_of(owner, live)
    assert await owner.fetchval("select count(*) from jobs_internal.job") == 2


async def test_purging_keeps_what_is_as_old_as_wanted(owner):
    job = await a_job(owner)
    for days in (0, 3, 9):
        await ended(owner, job, days_ago=days)

    await owner.execute(
        "select jobs.sp_purge_jobhistory(job_id => $1, oldest_date => now() - interval '5 days')",
        job.id,
    )

    assert await counts(owner) == [2, 2, 6, 2, 6]


async def test_a_snapshot_that_another_run_names_stays(owner):
    job, other = await a_job(owner), await a_job(owner, "other")
    run, second = await a_run(owner, job), await a_run(owner, other)
    snapshot = await some_targets(owner, job, run, 2)
    await a_step(owner, second)
    await owner.execute(PLAN, second, 1, snapshot, [])
    await end(owner, run)

    await owner.execute("select jobs.sp_purge_jobhistory('nightly')")

    assert await counts(owner) == [1, 1, 2, 1, 2]


async def test_a_deleted_job_goes_with_its_last_run(owner):
    job = await a_job(owner)
    await ended(owner, job, days_ago=9)
    await ended(owner, job)
    other = await a_job(owner, "other")
    await owner.executemany(LEDGER, [(job.id,), (other.id,)])
    await owner.execute("update jobs_internal.job set deleted_at = now()")

    error = await refused("select jobs.sp_purge_jobhistory('nightly')", session=owner)
    assert error.sqlstate == "MU010"
    await owner.execute(
        "select jobs.sp_purge_jobhistory(job_id => $1, oldest_date => now() - interval '5 days')",
        job.id,
    )
    assert await owner.fetchval("select count(*) from jobs_internal.job") == 2
    await owner.execute("select jobs.sp_purge_jobhistory(job_id => $1)", job.id)

    left = await owner.fetch("select job_id from jobs_internal.job")
    assert left == [(other.id,)]
    assert await owner.fetch("select job_id from jobs_internal.target_ledger") == left
    assert await counts(owner) == [0, 0, 0, 0, 0]


async def test_purging_wants_one_name_for_the_job(owner):
    job = await a_job(owner)

    for args in ((None, None), ("nightly", job.id)):
        error = await refused("select jobs.sp_purge_jobhistory($1, $2)", *args, session=owner)
        assert error.sqlstate == "MU012"
    assert (
        await refused("select jobs.sp_purge_jobhistory(job_id => $1)", uuid4(), session=owner)
    ).sqlstate == "MU010"


async def test_the_agent_starts_and_cancels_for_whom_it_speaks(account, owner):
    job, chosen = await a_job(owner), uuid4()
    agent = await account.connect("agent")
    async with agent.transaction():
        await agent.execute(
            "select jobs_internal.begin_command($1, 'start_job', 'd', 'anna', 'rest')", uuid4()
        )
        first = await agent.fetchval(START, job.name, chosen)
        again = await agent.fetchval(START, job.name, chosen)
        stopped = await agent.fetchval(
            "select jobs_internal.cancel_execution($1, $2, 'why')::text", job.name, chosen
        )

    assert (loads(first)["created"], loads(again)["created"]) == (True, False)
    assert loads(first)["item"] == loads(again)["item"]
    assert loads(first)["item"]["properties"]["actor"] == "anna"
    assert loads(stopped) == {"canceled": True}
    said = await owner.fetchrow("select requested_by, door, reason from jobs.job_cancellations")
    assert tuple(said) == ("anna", "rest", "why")
    await agent.close()


async def test_a_start_with_a_body_that_nobody_understands_is_refused(account, owner):
    await a_job(owner)
    agent = await account.connect("agent")

    error = await refused(
        "select jobs_internal.start_job('nightly', null, '{\"limt\": 3}')", session=agent
    )

    assert (error.sqlstate, error.column_name) == ("MU012", "limt")
    await agent.close()


async def test_cancelling_begun_runs_or_those_of_another_job(account, owner):
    job = await a_job(owner)
    await a_job(owner, "other")
    run = await a_run(owner, job)
    await a_step(owner, run)
    cancel = "select jobs_internal.cancel_execution($1, $2, null)::text"

    assert loads(await owner.fetchval(cancel, "nightly", run)) == {"canceled": False}

    assert (await refused(cancel, "other", run, session=owner)).sqlstate == "MU010"
    await end(owner, run)
    assert (await refused(cancel, "nightly", run, session=owner)).sqlstate == "MU013"


async def test_groups_may_do_what_their_names_say(account, owner):
    job = await a_job(owner)
    reader, operator, admin = account.roles.groups
    await owner.execute("reset role")

    async def may(group: str, statement: str, *args) -> bool:
        await owner.execute(f'set role "{group}"')
        try:
            await owner.execute(statement, *args)
            return True
        except asyncpg.InsufficientPrivilegeError:
            return False
        finally:
            await owner.execute("reset role")

    for group in (reader, operator, admin):
        for view in ("job_executions", "job_cancellations", "deleted_job_executions"):
            assert await may(group, f"select * from jobs.{view}")
        assert not await may(group, "select * from jobs_internal.all_job_executions")
        assert not await may(group, "select jobs_internal.start_job('nightly', null, null)")
    for group, allowed in ((reader, False), (operator, True), (admin, True)):
        run = uuid4()
        assert await may(group, "select jobs.sp_start_job($1, $2)", job.name, run) is allowed
        if allowed:
            assert await may(group, "select jobs.sp_stop_job($1)", run)
        for action in ("sp_pause", "sp_resume"):
            assert await may(group, f"select jobs.{action}()") is allowed
    assert not await may(operator, "select jobs.sp_purge_jobhistory('nightly')")
    assert await may(admin, "select jobs.sp_purge_jobhistory('nightly')")
