"""Rollouts on real databases: waves, halts, gates, resume and abort, also after the core started again."""

import secrets

import asyncpg
import pytest

from engine.core.main import Core
from tests.support.effects import COUNT, DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

EFFECT = "insert into effect values (1)"
BROKEN = "insert into no_such_table values (1)"


async def start(fleet: Fleet, script: str, *, one_by_one=False, **rollout):
    name = a_name()
    options = {"rollout": rollout, "jitter": 0}
    parallelism = 1 if one_by_one else None
    await fleet.job(name, script, options=options, retry_attempts=0, max_parallelism=parallelism)
    return await fleet.start(name)


def a_name() -> str:
    return f"job {secrets.token_hex(4)}"


async def wait_reason(fleet: Fleet, run, reason: str):
    """Waits until the run waits for this reason and nothing of it runs; returns its step."""

    async def reached() -> bool:
        reasons = [step["wait_reason"] for step in await fleet.steps(run)]
        return reasons == [reason] and not (await fleet.lifecycles(run))["InProgress"]

    await until(reached)
    return (await fleet.steps(run))[0]


async def effects(fleet: Fleet) -> int:
    return sum(await fleet.everywhere(COUNT))


def core_of(fleet: Fleet) -> Core:
    (core,) = [one.living for one in fleet.alive if isinstance(one.living, Core)]
    return core


async def restart_core(fleet: Fleet) -> None:
    (core,) = [one for one in fleet.alive if isinstance(one.living, Core)]
    await fleet.kill(core)
    await fleet.core()


async def test_a_broken_script_touches_exactly_the_first_wave(databases: Fleet):
    run = await start(databases, BROKEN, waves=[1, "50%", "100%"])
    step = await wait_reason(databases, run, "Halted")
    assert (step["wave"], step["waves"], step["halt_rule"]) == (1, 3, "FailureLimit")
    assert "haltAfterFailures is 1" in step["last_message"]
    assert await databases.lifecycles(run) == {"Failed": 1, "Created": DATABASES - 1}
    assert len(await databases.tasks(run)) == 1

    await databases.call("sp_abort_execution", job_execution_id=run)
    assert await databases.ended(run) == "Failed"
    targets = await databases.targets_of(run)
    assert [row["end_reason"] for row in targets] == ["StatementFailed"] + ["Halted"] * (
        DATABASES - 1
    )
    assert len(await databases.tasks(run)) == 1


async def test_waves_follow_each_other(databases: Fleet):
    run = await start(databases, EFFECT, waves=[1, "50%", "100%"])
    assert await databases.ended(run) == "Succeeded"
    assert await effects(databases) == DATABASES
    rows = await databases.targets_of(run)
    assert [row["wave"] for row in rows] == [1, 2, 2, 2, 3, 3, 3, 3]
    for wave in (1, 2):
        last_end = max(row["end_time"] for row in rows if row["wave"] == wave)
        first_start = min(row["start_time"] for row in rows if row["wave"] == wave + 1)
        assert last_end <= first_start


async def test_a_resumed_run_goes_on_and_the_cause_no_longer_counts(databases: Fleet):
    await databases.query(databases.databases[0], "drop table effect")
    run = await start(databases, EFFECT, waves=[1, "100%"])
    await wait_reason(databases, run, "Halted")
    await databases.call("sp_resume_execution", job_execution_id=run)
    assert await databases.ended(run) == "Failed"
    assert await databases.lifecycles(run) == {"Failed": 1, "Succeeded": DATABASES - 1}


async def test_a_core_that_starts_again_keeps_a_halt_and_obeys_a_resume(databases: Fleet):
    run = await start(databases, BROKEN, one_by_one=True, waves=[2, "100%"], haltAfterFailures=2)
    await wait_reason(databases, run, "Halted")
    await restart_core(databases)
    await databases.run("select 1")  # the new core works
    assert await databases.lifecycles(run) == {"Failed": 2, "Created": DATABASES - 2}

    await databases.call("sp_resume_execution", job_execution_id=run)

    async def halted_again() -> bool:
        (step,) = await databases.steps(run)
        return step["halted_at"] is not None

    await until(halted_again)
    await restart_core(databases)
    await databases.call("sp_abort_execution", job_execution_id=run)
    assert await databases.ended(run) == "Failed"


async def test_a_manual_gate_waits_for_an_operator(databases: Fleet):
    run = await start(databases, EFFECT, waves=[1, 2, "100%"], gate="manual")
    for wave, number in ((1, 1), (2, 2)):
        step = await wait_reason(databases, run, "Gate")
        assert (step["wave"], await effects(databases)) == (wave, number)
        await restart_core(databases)
        await databases.call("sp_resume_execution", job_execution_id=run)

        async def went_on(wave=wave) -> bool:
            (step,) = await databases.steps(run)
            return step["wave"] > wave

        await until(went_on)
    assert await databases.ended(run) == "Succeeded"
    assert await effects(databases) == DATABASES


async def test_a_pause_between_waves_is_shown_and_can_be_skipped(databases: Fleet):
    run = await start(databases, EFFECT, waves=[1, "100%"], pauseBetween="PT1H")
    step = await wait_reason(databases, run, "WavePause")
    assert (step["not_before"] - max(
        row["end_time"] for row in await databases.targets_of(run) if row["end_time"]
    )).total_seconds() == pytest.approx(3600, abs=60)  # fmt: skip
    assert await effects(databases) == 1
    await databases.call("sp_resume_execution", job_execution_id=run)
    assert await databases.ended(run) == "Succeeded"


async def test_an_aborted_gate_ends_the_run_and_no_step_follows(databases: Fleet):
    options = {"rollout": {"waves": [1, "100%"], "gate": "manual"}, "onFailure": "continue"}
    name = a_name()
    await databases.job(name, EFFECT, EFFECT, options=options)
    run = await databases.start(name)
    await wait_reason(databases, run, "Gate")
    await databases.call("sp_abort_execution", job_execution_id=run)
    assert await databases.ended(run) == "Canceled"
    assert len(await databases.steps(run)) == 1
    assert await effects(databases) == 1


async def test_equal_errors_in_a_row_halt_a_run_without_rollout(databases: Fleet):
    await databases.root.execute("update jobs_internal.instance set same_error_limit = 3")
    await until(lambda: core_of(databases).hosting.cluster_state.run_state.same_error_limit == 3)
    name = a_name()
    await databases.job(name, BROKEN, retry_attempts=0, max_parallelism=1)
    run = await databases.start(name)
    step = await wait_reason(databases, run, "Halted")
    assert step["halt_rule"] == "SameError"
    assert "42P01" in step["last_message"]
    counts = await databases.lifecycles(run)
    assert counts["Failed"] >= 3
    assert counts["Created"] == DATABASES - counts["Failed"]
    assert len(await databases.tasks(run)) == counts["Failed"]


async def test_a_cancelled_run_that_is_halted_ends(databases: Fleet):
    run = await start(databases, BROKEN, waves=[1, "100%"])
    await wait_reason(databases, run, "Halted")
    await databases.call("sp_stop_job", job_execution_id=run)
    assert await databases.ended(run) == "Canceled"


@pytest.mark.parametrize("function", ["sp_resume_execution", "sp_abort_execution"])
async def test_only_a_run_that_is_halted_or_between_waves_is_resumed_or_aborted(
    databases: Fleet, function
):
    run = await databases.run("select 1")
    with pytest.raises(asyncpg.PostgresError, match="has ended") as refused:
        await databases.call(function, job_execution_id=run)
    assert refused.value.sqlstate == "MU013"


async def test_the_order_of_a_seed_is_the_same_in_every_run(databases: Fleet):
    orders = []
    for seed in (1, 1, 2):
        run = await start(databases, "select 1", waves=["100%"], orderBy=f"random({seed})")
        await databases.ended(run)
        orders.append([row[0] for row in await databases.root.fetch(
            "select d.database_name from jobs_internal.target_execution x"
            " join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)"
            " where x.job_execution_id = $1 order by x.ordinal", run)])  # fmt: skip
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == sorted(orders[2])
    assert orders[0] != orders[2]
