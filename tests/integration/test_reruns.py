"""Reruns: a new run on chosen targets of an earlier one, with the current version of the job."""

from uuid import uuid4

import asyncpg
import pytest

from tests.support.effects import COUNT, DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

EFFECT = "insert into effect values ($(step_id))"


async def run_with_two_failures(fleet: Fleet, *scripts: str):
    for name in fleet.databases[:2]:
        await fleet.query(name, "alter table effect rename to absent")
    await fleet.job("job", *(scripts or (EFFECT,)), retry_attempts=0)
    run = await fleet.start("job")
    assert await fleet.ended(run) == "Failed"
    for name in fleet.databases[:2]:
        await fleet.query(name, "alter table absent rename to effect")
    return run


async def rerun(fleet: Fleet, run, **named):
    made = await fleet.call("sp_rerun_execution", job_execution_id=run, **named)
    await fleet.ended(made)
    return made


async def names(fleet: Fleet, run, step: int = 1) -> list[str]:
    return [row[0] for row in await fleet.root.fetch(
        "select d.database_name from jobs_internal.target_execution x"
        " join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)"
        " where x.job_execution_id = $1 and x.step_id = $2 order by 1", run, step)]  # fmt: skip


async def test_only_the_failed_targets_run_again(databases: Fleet):
    run = await run_with_two_failures(databases)
    again = await rerun(databases, run)
    assert await databases.lifecycle(again) == "Succeeded"
    assert await names(databases, again) == sorted(databases.databases[:2])
    assert await databases.everywhere(COUNT) == [1] * DATABASES
    row = await databases.root.fetchrow(
        "select origin, rerun_of from jobs_internal.job_execution where job_execution_id = $1",
        again,
    )
    assert tuple(row) == ("rerun", run)


async def test_the_current_version_of_the_job_runs(databases: Fleet):
    run = await run_with_two_failures(databases, "insert into no_such_table values (1)")
    await databases.call(
        "sp_update_jobstep", job_name="job", step_name="step1", command=EFFECT
    )  # fmt: skip
    again = await rerun(databases, run)
    assert await databases.lifecycle(again) == "Succeeded"
    assert await databases.everywhere(COUNT) == [1] * DATABASES


async def test_succeeded_targets_run_again_when_they_are_asked_for(databases: Fleet):
    run = await run_with_two_failures(databases)
    again = await rerun(databases, run, outcomes=["Succeeded"])
    assert await names(databases, again) == sorted(databases.databases[2:])


async def test_named_targets_run_again_however_they_ended(databases: Fleet):
    run = await run_with_two_failures(databases)
    target = await databases.root.fetchval(
        "select d.target_id from jobs_internal.snapshot_target d where d.database_name = $1",
        databases.databases[4],
    )
    again = await rerun(databases, run, target_ids=[target])
    assert await names(databases, again) == [databases.databases[4]]


async def test_a_target_whose_outcome_is_unknown_is_not_failed(databases: Fleet):
    run = await run_with_two_failures(databases)
    await databases.root.execute(
        "update jobs_internal.target_execution set end_reason = 'OutcomeUnknown'"
        " where job_execution_id = $1 and ordinal = 1", run,
    )  # fmt: skip
    assert await names(databases, await rerun(databases, run)) == [databases.databases[1]]
    again = await rerun(databases, run, outcomes=["Unknown"])
    assert await names(databases, again) == [databases.databases[0]]


async def test_steps_that_the_origin_did_not_reach_follow_on_the_chosen_targets_alone(
    databases: Fleet,
):
    run = await run_with_two_failures(databases, EFFECT, EFFECT)
    assert len(await databases.steps(run)) == 1
    again = await rerun(databases, run)
    assert await databases.lifecycle(again) == "Succeeded"
    for step in (1, 2):
        assert await names(databases, again, step) == sorted(databases.databases[:2])
    assert await databases.everywhere(COUNT) == [2, 2] + [1] * (DATABASES - 2)


async def test_a_target_takes_part_from_the_step_on_in_which_it_failed(databases: Fleet):
    later = "do $$ begin perform 1/(select count(*) from effect where n = 7)::int; end $$"
    await databases.job("job", EFFECT, later, retry_attempts=0)
    for name in databases.databases[1:]:
        await databases.query(name, "insert into effect values (7)")
    run = await databases.start("job")
    assert await databases.ended(run) == "Failed"
    await databases.query(0, "insert into effect values (7)")

    again = await rerun(databases, run)

    assert await databases.lifecycle(again) == "SucceededWithSkipped"
    first, second = await databases.steps(again)
    assert (first["lifecycle"], second["lifecycle"]) == ("Skipped", "Succeeded")
    assert await names(databases, again, 2) == [databases.databases[0]]
    assert await databases.query(0, "select count(*) from effect where n = 1") == [(1,)]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"outcomes": ["canceled"]}, "no target that ended canceled"),
        ({"outcomes": ["broken"]}, "outcomes is a list of failed"),
        ({"outcomes": []}, "outcomes is a list of failed"),
        ({"target_ids": [uuid4()]}, "no target with such an id"),
    ],
)
async def test_a_rerun_of_nothing_is_refused(databases: Fleet, named, message):
    run = await run_with_two_failures(databases)
    with pytest.raises(asyncpg.PostgresError, match=message):
        await databases.call("sp_rerun_execution", job_execution_id=run, **named)
    assert (
        await databases.root.fetchval(
            "select count(*) from jobs.job_executions where origin = 'rerun'"
        )
        == 0
    )


async def test_a_query_is_not_run_again(databases: Fleet):
    job = await databases.root.fetchval("select job_id from jobs_internal.job where name = 'adhoc'")
    assert job is not None
    run = await run_with_two_failures(databases)
    await databases.root.execute("update jobs_internal.job set system = true where name = 'job'")
    with pytest.raises(asyncpg.PostgresError, match="belongs to Muster itself"):
        await databases.call("sp_rerun_execution", job_execution_id=run)
