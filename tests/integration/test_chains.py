"""Steps with advance perTarget on real databases: each target goes through the chain on its own."""

import pytest

from tests.integration.test_rollouts import core_of, restart_core
from tests.support.effects import DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

EFFECT = "insert into effect values ($(step_id))"
# Waits in the last database until `gate` is there.
GATED = f"""
do $$ begin
    if current_database() ~ '_7$' and to_regclass('gate') is null then
        raise exception 'closed' using errcode = '40001';
    end if;
end $$;
{EFFECT}
"""
STEPS = "select array_agg(n order by n) from effect"
PER_TARGET = {"advance": "perTarget", "jitter": 0}
ONCE_A_SECOND = {"retry_attempts": 1000, "maximum_retry_interval_seconds": 1}


async def chain(
    fleet: Fleet, *scripts: str, first=None, more=PER_TARGET, third=None, **named
) -> None:
    """A job with these steps; every one after the first goes on per target."""
    for number, script in enumerate(scripts, 1):
        options = (
            {"jitter": 0, **(first or {})}
            if number == 1
            else third
            if third and number == 3
            else more
        )
        if number == 1:
            await fleet.job("job", script, options=options, **named)
        else:
            await fleet.call(
                "sp_add_jobstep", job_name="job", step_name=f"step{number}", command=script,
                target_group_name="everything", options=options, **named,
            )  # fmt: skip


async def by_database(fleet: Fleet, run, step: int) -> dict[str, tuple[str, str | None]]:
    rows = await fleet.root.fetch(
        "select d.database_name, x.lifecycle, x.end_reason from jobs_internal.target_execution x"
        " join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)"
        " where x.job_execution_id = $1 and x.step_id = $2", run, step)  # fmt: skip
    return {row[0].rpartition("_")[2]: (row[1], row[2]) for row in rows}


async def reached(fleet: Fleet, run, step: int, number: int, lifecycle: str = "Succeeded"):
    async def many() -> bool:
        ends = await by_database(fleet, run, step)
        return [end for end, _ in ends.values()].count(lifecycle) == number

    await until(many)


async def test_targets_go_on_while_another_is_still_in_the_first_step(databases: Fleet):
    await chain(databases, GATED, EFFECT, EFFECT, **ONCE_A_SECOND)
    run = await databases.start("job")
    await reached(databases, run, 3, DATABASES - 1)
    first = await by_database(databases, run, 1)
    assert first["7"][0] in {"WaitingForRetry", "InProgress"}
    assert (await by_database(databases, run, 3))["7"] == ("Created", None)

    await restart_core(databases)
    await databases.run("select 1")  # the new core works
    assert (await by_database(databases, run, 2))["7"] == ("Created", None)

    await databases.execute(databases.databases[7], "create table if not exists gate ()")
    assert await databases.ended(run) == "Succeeded"
    await databases.execute(databases.databases[7], "drop table gate")
    assert await databases.everywhere(STEPS) == [[1, 2, 3]] * DATABASES


async def test_a_target_that_failed_stops_alone(databases: Fleet):
    await databases.execute(databases.databases[0], "drop table effect")
    await chain(databases, EFFECT, "select 1", "select 1", retry_attempts=0)
    run = await databases.start("job")
    assert await databases.ended(run) == "Failed"
    for step in (2, 3):
        ends = await by_database(databases, run, step)
        assert ends.pop("0") == ("Skipped", "PreviousStepNotSucceeded")
        assert set(ends.values()) == {("Succeeded", None)}
    steps = await databases.steps(run)
    assert [step["lifecycle"] for step in steps] == ["Failed"] + ["SucceededWithSkipped"] * 2
    ends = [step["end_time"] for step in steps]
    assert ends == sorted(ends)


async def test_a_failed_target_goes_on_if_its_step_says_continue(databases: Fleet):
    await databases.execute(databases.databases[0], "drop table effect")
    first = {"onFailure": "continue"}
    await chain(databases, EFFECT, "select 1", first=first, retry_attempts=0)
    run = await databases.start("job")
    assert await databases.ended(run) == "Failed"
    assert {end for end, _ in (await by_database(databases, run, 2)).values()} == {"Succeeded"}


async def test_a_barrier_after_a_chain_that_failed_is_not_reached(databases: Fleet):
    await databases.execute(databases.databases[0], "drop table effect")
    barrier = {"jitter": 0}
    await chain(databases, EFFECT, "select 1", "select 1", third=barrier, retry_attempts=0)
    run = await databases.start("job")
    assert await databases.ended(run) == "Failed"
    assert len(await databases.steps(run)) == 2


async def test_a_wave_goes_through_the_whole_chain_before_the_next_one_starts(databases: Fleet):
    first = {"rollout": {"waves": [1, "100%"]}}
    await chain(databases, EFFECT, EFFECT, first=first, retry_attempts=0)
    run = await databases.start("job")
    assert await databases.ended(run) == "Succeeded"
    rows = await databases.targets_of(run)
    canary_end = max(row["end_time"] for row in rows if row["ordinal"] == 1)
    others = [row for row in rows if row["ordinal"] > 1]
    assert canary_end <= min(row["start_time"] for row in others)
    assert await databases.everywhere(STEPS) == [[1, 2]] * DATABASES


@pytest.mark.parametrize("decision", ["resume", "abort"])
async def test_a_failure_in_a_later_step_halts_the_whole_chain(databases: Fleet, decision):
    broken = "insert into no_such_table values (1)"
    first = {"rollout": {"waves": [1, "100%"]}}
    await chain(databases, EFFECT, broken, first=first, retry_attempts=0)
    run = await databases.start("job")

    async def halted() -> bool:
        return [step["wait_reason"] for step in await databases.steps(run)] == ["Halted"] * 2

    await until(halted)
    await restart_core(databases)
    await databases.run("select 1")  # the new core works
    assert len(await databases.tasks(run)) == 2

    await databases.call(f"sp_{decision}_execution", job_execution_id=run)
    assert await databases.ended(run) == "Failed"
    first_step, second = [await by_database(databases, run, step) for step in (1, 2)]
    if decision == "abort":
        assert list(first_step.values()).count(("Canceled", "Halted")) == DATABASES - 1
        assert list(second.values()).count(("Canceled", "Halted")) == DATABASES - 1
        assert len(await databases.tasks(run)) == 2
    else:  # in the second wave nothing is left that could be halted in the first step
        assert set(first_step.values()) == {("Succeeded", None)}


async def test_equal_errors_in_a_later_step_halt_the_chain(databases: Fleet):
    await databases.root.execute("update jobs_internal.instance set same_error_limit = 2")
    await until(lambda: core_of(databases).hosting.cluster_state.run_state.same_error_limit == 2)
    broken = "insert into no_such_table values (1)"
    await chain(databases, EFFECT, broken, retry_attempts=0, max_parallelism=1)
    run = await databases.start("job")

    async def halted() -> bool:
        steps = await databases.steps(run)
        return len(steps) == 2 and steps[1]["halt_rule"] == "SameError"

    await until(halted)
    await databases.call("sp_stop_job", job_execution_id=run)
    assert await databases.ended(run) in {"Canceled", "Failed"}


@pytest.mark.parametrize("step", [None, "step2"])
async def test_a_cancelled_chain_ends_and_a_cancelled_step_leaves_the_others(
    databases: Fleet, step
):
    await chain(databases, GATED, EFFECT, **ONCE_A_SECOND)
    run = await databases.start("job")
    await reached(databases, run, 2, DATABASES - 1)
    if step is None:
        await databases.call("sp_stop_job", job_execution_id=run)
    else:
        await databases.call("sp_stop_step", job_execution_id=run, step_name=step)
        await reached(databases, run, 2, 1, "Canceled")
        await databases.execute(databases.databases[7], "create table gate ()")
    assert await databases.ended(run) == "Canceled"
    if step is not None:
        await databases.execute(databases.databases[7], "drop table gate")
    first, second = [await by_database(databases, run, number) for number in (1, 2)]
    assert first["7"][0] == ("Canceled" if step is None else "Succeeded")
    assert second["7"] == ("Canceled", "Canceled")


async def test_a_rerun_goes_through_the_chain_from_where_each_target_failed(databases: Fleet):
    await databases.execute(databases.databases[0], "drop table effect")
    await databases.execute(databases.databases[1], "create table absent ()")
    second = "do $$ begin if to_regclass('absent') is not null then raise 'no'; end if; end $$"
    await chain(databases, EFFECT, second, retry_attempts=0)
    run = await databases.start("job")
    assert await databases.ended(run) == "Failed"
    await databases.execute(databases.databases[1], "drop table absent")

    again = await databases.call(
        "sp_rerun_execution", job_execution_id=run, outcomes=["failed", "skipped"]
    )

    assert await databases.ended(again) == "Failed"
    assert set(await by_database(databases, again, 1)) == {"0"}
    assert await by_database(databases, again, 2) == {
        "0": ("Skipped", "PreviousStepNotSucceeded"),
        "1": ("Succeeded", None),
    }
