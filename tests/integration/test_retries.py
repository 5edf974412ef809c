"""Retries of single targets of live runs on real databases: in halted rollouts, in chains, at the end of a step."""

import asyncpg
import pytest

from muster.core import failpoints
from tests.integration.test_chains import by_database, chain, reached
from tests.integration.test_rollouts import EFFECT, core_of, effects, start, wait_reason
from tests.support.effects import DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

# Fails in the first database until the table `absent` is there, and waits for it in the last one.
NEEDS_TABLE = """
do $$ begin
    if to_regclass('absent') is null and current_database() ~ '_0$' then
        raise exception 'not ready' using errcode = '42P01';
    elsif to_regclass('absent') is null and current_database() ~ '_7$' then
        raise exception 'not yet' using errcode = '40001';
    end if;
end $$;
insert into effect values ($(step_id));
"""
ONCE_A_SECOND = {"retry_attempts": 1000, "maximum_retry_interval_seconds": 1}
CREATE_TABLE = "create table absent ()"
TARGET = """
select d.target_id
  from jobs_internal.target_execution x
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.job_execution_id = $1 and x.step_id = $2 and d.database_name = $3
"""

FAILED = """
select x.job_execution_id, d.target_id
  from jobs_internal.target_execution x
  join jobs_internal.job_execution r using (run_day, job_execution_id)
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.lifecycle = 'Failed' and r.end_time is null
"""


async def retry(fleet: Fleet, run, step: int = 1, database: int = 0) -> None:
    target = await fleet.root.fetchval(TARGET, run, step, fleet.databases[database])
    await fleet.call(
        "sp_retry_target", job_execution_id=run, step_name=f"step{step}", target_id=target
    )


async def refusal(fleet: Fleet, run, step: int = 1, database: int = 0) -> tuple[str, str]:
    with pytest.raises(asyncpg.PostgresError) as caught:
        await retry(fleet, run, step, database)
    assert caught.value.sqlstate == "MU017"
    return caught.value.message, caught.value.hint


async def attempts(fleet: Fleet, run) -> list[str]:
    """How the attempts of the first target ended."""
    tasks = [task for task in await fleet.tasks(run) if task["ordinal"] == 1]
    return [task["lifecycle"] for task in sorted(tasks, key=lambda task: task["attempt"])]


async def test_a_retry_in_a_halted_rollout_starts_after_the_resume(databases: Fleet):
    broken = databases.databases[0]
    await databases.execute(broken, "drop table effect")
    run = await start(databases, EFFECT, waves=[1, "100%"])
    await wait_reason(databases, run, "Halted")
    await databases.execute(broken, "create table effect (n int)")

    await retry(databases, run)

    assert await databases.lifecycles(run) == {"Created": DATABASES}
    message, hint = await refusal(databases, run)
    assert message.endswith("has not finished: Created") and "without success" in hint
    await databases.call("sp_resume_execution", job_execution_id=run)
    assert await databases.ended(run) == "Succeeded"
    assert await attempts(databases, run) == ["Failed", "Succeeded"]
    assert await effects(databases) == DATABASES
    message, hint = await refusal(databases, run)
    assert message.endswith("has finished: Succeeded") and "rerun" in hint


async def test_a_failure_that_was_retried_does_not_count_for_the_limit(databases: Fleet):
    rollout = {"waves": ["100%"], "haltAfterFailures": 2}
    await databases.job(
        "job", NEEDS_TABLE, options={"rollout": rollout, "jitter": 0}, **ONCE_A_SECOND
    )
    run = await databases.start("job")
    await reached(databases, run, 1, 1, "Failed")

    await retry(databases, run)

    async def failed_again() -> bool:
        return await attempts(databases, run) == ["Failed", "Failed"]

    await until(failed_again)

    async def counted() -> bool:
        held = core_of(databases).hosting.cluster_state.run_state.runs.get(run)
        return held is not None and bool(held.live) and held.live[0].rollout.failures == 1

    await until(counted)
    message, _ = await refusal(databases, run, database=3)
    assert message.endswith("has succeeded")
    for number in (0, 7):
        await databases.execute(databases.databases[number], CREATE_TABLE)
    await retry(databases, run)
    assert await databases.ended(run) == "Succeeded"
    assert await effects(databases) == DATABASES


async def test_a_retried_target_goes_on_to_the_steps_that_skipped_it(databases: Fleet):
    await chain(databases, NEEDS_TABLE, EFFECT, EFFECT, **ONCE_A_SECOND)
    run = await databases.start("job")
    await reached(databases, run, 3, 1, "Skipped")
    message, hint = await refusal(databases, run, step=2)
    assert "was skipped" in message and "in that step" in hint
    await databases.execute(databases.databases[0], CREATE_TABLE)

    await retry(databases, run)

    await reached(databases, run, 3, DATABASES - 1)
    assert (await by_database(databases, run, 1))["7"][0] in {"WaitingForRetry", "InProgress"}
    await databases.execute(databases.databases[7], CREATE_TABLE)
    assert await databases.ended(run) == "Succeeded"
    assert await effects(databases) == 3 * DATABASES


async def test_a_retry_when_the_core_is_about_to_end_the_step_keeps_the_step(databases: Fleet):
    broken = databases.databases[0]
    await databases.execute(broken, "drop table effect")
    await databases.job("job", EFFECT, retry_attempts=0)
    retried = []

    async def retry_once() -> None:
        if retried:
            return
        retried.append(True)
        await databases.execute(broken, "create table effect (n int)")
        connection = await databases.account.connect("root")
        try:
            run, target = await connection.fetchrow(FAILED)
            await connection.execute("select jobs.sp_retry_target($1, 'step1', $2)", run, target)
        finally:
            await connection.close()

    with failpoints.armed({"core.before_step_end": retry_once}):
        run = await databases.start("job")
        assert await databases.ended(run) == "Succeeded"
    assert retried
    assert await attempts(databases, run) == ["Failed", "Succeeded"]


async def test_tasks_that_run_while_the_run_is_loaded_again_keep_their_slots_and_their_results(
    databases: Fleet,
):
    slow = f"""
    do $$ begin
        if current_database() ~ '_7$' then perform pg_sleep(2); end if;
    end $$;
    {NEEDS_TABLE.replace("_7$", "none")}
    """
    await databases.job("job", slow, retry_attempts=0)
    run = await databases.start("job")
    await reached(databases, run, 1, 1, "Failed")
    await reached(databases, run, 1, DATABASES - 2)
    await databases.execute(databases.databases[0], CREATE_TABLE)

    await retry(databases, run)

    await reached(databases, run, 1, DATABASES - 1)
    assert (await by_database(databases, run, 1))["7"][0] == "InProgress"
    assert await databases.ended(run) == "Succeeded"
    assert len(await databases.tasks(run)) == DATABASES + 1

    async def free() -> bool:
        run_state = core_of(databases).hosting.cluster_state.run_state
        instance = run_state.tree.instance
        return not run_state.running and instance.room == instance.slots

    await until(free)
    assert core_of(databases).hosting.restarts["core"] == 0
