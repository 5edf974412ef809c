"""Attempts of a run on real databases: passes over what has not succeeded, also after the core started again."""

import json
import secrets

import pytest

from engine.core.main import Core
from tests.support.effects import COUNT, DATABASES, databases, shared_fleet, together
from tests.support.fleet import Fleet
from tests.support.launching import until

__all__ = ["databases", "shared_fleet"]
pytestmark = [pytest.mark.newest, together]

NEEDS_ROW = """
do $$ begin
    if not exists (select from effect) then raise 'no row yet' using errcode = '40001'; end if;
end $$;
insert into effect values (2)
"""
PERMANENT = "insert into no_such_table values (1)"
AT_ONCE = {"enabled": True, "backoffSeconds": [0]}
MUCH_LATER = {"enabled": True, "backoffSeconds": [3600]}


async def start(fleet: Fleet, *scripts: str, rules=AT_ONCE, overlap=None, **more):
    name = f"job {secrets.token_hex(4)}"
    options = {"jitter": 0} | more.pop("options", {})
    await fleet.job(name, *scripts, options=options, **{"retry_attempts": 0} | more)
    await fleet.call("sp_update_job", job_name=name, run_attempts=rules)
    if overlap:
        await fleet.call("sp_update_job", job_name=name, overlap=overlap)
    return name, await fleet.start(name)


async def attempts(fleet: Fleet, run):
    """Of each attempt: its lifecycle, and how many targets newly succeeded and remained."""
    rows = await fleet.root.fetch(
        "select * from jobs.run_attempts where job_execution_id = $1 order by attempt", run
    )
    return [(row["lifecycle"], row["newly_succeeded"], row["remaining"]) for row in rows]


async def waiting(fleet: Fleet, run, attempt: int = 1):
    """Waits until the run waits for the attempt after this one; returns its row."""

    async def reached() -> bool:
        row = await row_of(fleet, run)
        return (row["lifecycle"], row["attempt"]) == ("WaitingForRetry", attempt)

    await until(reached)
    return await row_of(fleet, run)


async def row_of(fleet: Fleet, run):
    return await fleet.root.fetchrow(
        "select * from jobs_internal.job_execution where job_execution_id = $1", run
    )


async def due_now(fleet: Fleet, run) -> None:
    await fleet.root.execute(
        "update jobs_internal.job_execution set not_before = clock_timestamp() where job_execution_id = $1",
        run,
    )


async def restart_core(fleet: Fleet) -> None:
    (core,) = [one for one in fleet.alive if isinstance(one.living, Core)]
    await fleet.kill(core)
    await fleet.core()


async def heal(fleet: Fleet, *names: str) -> None:
    for name in names:
        await fleet.execute(name, "insert into effect values (1)")


async def test_each_attempt_takes_the_targets_that_have_not_succeeded(databases: Fleet):
    await heal(databases, *databases.databases[:3])
    rules = {"enabled": True, "backoffSeconds": [0, 3600]}
    _, run = await start(databases, NEEDS_ROW, rules=rules)

    await waiting(databases, run, 3)
    await heal(databases, *databases.databases[3:])
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await attempts(databases, run) == [
        ("Failed", 3, 5), ("Failed", 0, 5), ("Failed", 0, 5), ("Succeeded", 5, 0)
    ]  # fmt: skip
    assert await databases.everywhere("select count(*) from effect where n = 2") == [1] * DATABASES
    assert [row["attempts"] for row in await databases.targets_of(run)] == [1] * 3 + [4] * 5


async def test_check_48_an_error_that_is_not_retried_ends_the_run_in_its_first_attempt(
    databases: Fleet,
):
    _, run = await start(databases, PERMANENT)

    assert await databases.ended(run) == "Failed"
    assert await attempts(databases, run) == [("Failed", 0, 0)]
    assert len(await databases.tasks(run)) == DATABASES
    message = (await row_of(databases, run))["last_message"]
    assert message.endswith("No further attempt: nothing may be repeated.")


async def test_the_last_attempt_says_which_limit_ended_the_run(databases: Fleet):
    rules = AT_ONCE | {"maxSuccessiveWithoutProgress": 2}
    _, run = await start(databases, NEEDS_ROW, rules=rules)

    assert await databases.ended(run) == "Failed"
    assert await attempts(databases, run) == [("Failed", 0, 8), ("Failed", 0, 8)]
    assert (await row_of(databases, run))["last_message"].endswith(
        "No further attempt: maxSuccessiveWithoutProgress is 2."
    )


async def test_check_49_the_due_time_and_the_counters_survive_a_restart(databases: Fleet):
    rules = {"enabled": True, "backoffSeconds": [0, 0, 90, 270]}
    _, run = await start(databases, NEEDS_ROW, rules=rules)
    before = await waiting(databases, run, 3)
    assert (before["not_before"] - before["start_time"]).total_seconds() >= 90

    for one in list(databases.alive):
        await databases.kill(one)
    await databases.core()
    await databases.host()
    await databases.run("select 1")  # the new core and host work

    assert dict(await row_of(databases, run)) == dict(before)
    assert await attempts(databases, run) == [("Failed", 0, 8)] * 3
    await due_now(databases, run)
    await restart_core(databases)
    await waiting(databases, run, 4)
    await databases.call("sp_stop_job", job_execution_id=run)
    assert await databases.ended(run) == "Canceled"


async def test_check_50_a_run_that_waits_for_its_next_attempt_is_cancelled_at_once(
    databases: Fleet,
):
    _, run = await start(databases, NEEDS_ROW, rules=MUCH_LATER)
    await waiting(databases, run)

    await databases.call("sp_stop_job", job_execution_id=run)

    assert await databases.ended(run, within=5) == "Canceled"
    assert await attempts(databases, run) == [("Failed", 0, 8)]
    assert await databases.lifecycles(run) == {"Failed": DATABASES}
    assert (await databases.steps(run))[0]["lifecycle"] == "Canceled"
    newest = await databases.root.fetchrow(
        "select next_attempt_start_time, message from jobs.run_attempts where job_execution_id = $1",
        run,
    )
    assert tuple(newest) == (None, "No further attempt: the run ended before it began.")


@pytest.mark.deep
async def test_check_50_a_run_that_waits_for_an_older_one_is_cancelled_at_once(databases: Fleet):
    name, first = await start(databases, NEEDS_ROW, rules=MUCH_LATER, overlap="queueOne")
    await waiting(databases, first)
    second = await databases.start(name)

    await databases.call("sp_stop_job", job_execution_id=second)

    assert await databases.ended(second, within=5) == "Canceled"
    assert await attempts(databases, second) == []
    assert (await row_of(databases, first))["lifecycle"] == "WaitingForRetry"
    await databases.call("sp_stop_job", job_execution_id=first)
    assert await databases.ended(first) == "Canceled"


async def test_another_run_leaves_out_what_a_waiting_run_takes_again(databases: Fleet):
    await heal(databases, *databases.databases[:3])
    name, first = await start(
        databases, NEEDS_ROW, rules={"enabled": True, "backoffSeconds": [0, 3600]}
    )
    await waiting(databases, first, 3)

    second = await databases.start(name)

    assert await databases.ended(second) == "SucceededWithSkipped"
    assert await databases.lifecycles(second) == {"Succeeded": 3, "Skipped": 5}
    await databases.call("sp_stop_job", job_execution_id=first)
    assert await databases.ended(first) == "Canceled"


@pytest.mark.deep
async def test_the_next_step_follows_when_the_attempts_are_through(databases: Fleet):
    rules = {"enabled": True, "backoffSeconds": [3600]}
    _, run = await start(databases, NEEDS_ROW, "insert into effect values (3)", rules=rules)
    await waiting(databases, run)
    assert len(await databases.steps(run)) == 1

    await heal(databases, *databases.databases)
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await attempts(databases, run) == [("Failed", 0, 8), ("Succeeded", 16, 0)]
    assert await databases.everywhere("select count(*) from effect where n = 3") == [1] * DATABASES


async def test_an_attempt_takes_a_target_through_all_steps_of_a_chain(databases: Fleet):
    await heal(databases, *databases.databases[:3])
    name = f"job {secrets.token_hex(4)}"
    await databases.job(name, NEEDS_ROW, retry_attempts=0)
    await databases.call(
        "sp_add_jobstep", job_name=name, step_name="step2", command="insert into effect values (3)",
        target_group_name="everything", retry_attempts=0, options={"advance": "perTarget"},
    )  # fmt: skip
    rules = {"enabled": True, "backoffSeconds": [0, 3600]}
    await databases.call("sp_update_job", job_name=name, run_attempts=rules)
    run = await databases.start(name)
    await waiting(databases, run, 3)
    assert await databases.lifecycles(run) == {"Succeeded": 6, "Failed": 5, "Skipped": 5}

    await heal(databases, *databases.databases[3:])
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await databases.lifecycles(run) == {"Succeeded": 16}
    assert (await attempts(databases, run))[-1] == ("Succeeded", 10, 0)
    assert await databases.everywhere("select count(*) from effect where n = 3") == [1] * DATABASES


async def test_a_halt_is_no_end_of_a_pass_and_an_abort_ends_the_attempts(databases: Fleet):
    options = {"rollout": {"waves": [2, "100%"], "haltAfterFailures": 1}}
    _, run = await start(databases, NEEDS_ROW, options=options)

    async def halted() -> bool:
        row = await row_of(databases, run)
        return row["wait_reason"] == "Halted"

    await until(halted)
    assert await attempts(databases, run) == [("InProgress", None, None)]

    await databases.call("sp_abort_execution", job_execution_id=run)
    assert await databases.ended(run) == "Failed"
    assert await attempts(databases, run) == [("Failed", 0, 2)]


@pytest.mark.deep
async def test_failures_of_earlier_attempts_do_not_halt_the_next_one(databases: Fleet):
    await heal(databases, *databases.databases[:6])
    options = {"rollout": {"waves": [6, "100%"], "haltAfterFailures": 2}}
    rules = {"enabled": True, "backoffSeconds": [0, 3600]}
    _, run = await start(databases, NEEDS_ROW, rules=rules, options=options)
    await waiting(databases, run, 3)
    await heal(databases, *databases.databases[6:])
    await due_now(databases, run)
    await restart_core(databases)
    assert await databases.ended(run) == "Succeeded"


@pytest.mark.deep
async def test_an_operator_may_retry_a_target_while_the_run_waits(databases: Fleet):
    await heal(databases, *databases.databases[1:])
    rules = {"enabled": True, "backoffSeconds": [0, 3600]}
    _, run = await start(databases, NEEDS_ROW, rules=rules)
    await waiting(databases, run, 3)
    await heal(databases, databases.databases[0])

    target = await databases.root.fetchval(
        "select target_id from jobs.job_executions where job_execution_id = $1 and lifecycle = 'Failed'",
        run,
    )
    await databases.call(
        "sp_retry_target", job_execution_id=run, step_name="step1", target_id=target
    )

    async def succeeded() -> bool:
        return await databases.in_state(run, "Succeeded", DATABASES)

    await until(succeeded)
    assert (await row_of(databases, run))["lifecycle"] == "WaitingForRetry"
    await due_now(databases, run)
    await restart_core(databases)
    assert await databases.ended(run) == "Succeeded"


@pytest.mark.deep
async def test_a_run_keeps_the_rules_that_it_was_created_with(databases: Fleet):
    name, run = await start(databases, NEEDS_ROW, rules=MUCH_LATER)
    await waiting(databases, run)
    assert json.loads((await row_of(databases, run))["run_attempts"]) == {
        "maxSuccessiveWithoutProgress": 5, "maxWithoutProgress": 10, "maxWithProgress": 20,
        "backoffSeconds": [3600],
    }  # fmt: skip

    await databases.call("sp_update_job", job_name=name, run_attempts={"enabled": False})

    other = await databases.start(name)
    assert (await row_of(databases, other))["run_attempts"] is None
    assert (await row_of(databases, run))["run_attempts"] is not None
    for each in (run, other):
        if (await row_of(databases, each))["end_time"] is None:
            await databases.call("sp_stop_job", job_execution_id=each)
        await databases.ended(each)


@pytest.mark.deep
async def test_jobs_without_a_rule_have_that_of_the_account(databases: Fleet):
    default = json.dumps({"enabled": True, "maxSuccessiveWithoutProgress": 1})
    change = "update jobs_internal.instance set run_attempts = $1"
    await databases.root.execute(change, default)
    try:
        run = await databases.run(NEEDS_ROW, retry_attempts=0)
        assert await attempts(databases, run) == [("Failed", 0, 8)]
        assert sum(await databases.everywhere(COUNT)) == 0
    finally:
        await databases.root.execute(change, json.dumps({"enabled": False}))


@pytest.mark.deep
async def test_a_target_that_timed_out_is_taken_again_with_its_whole_time(databases: Fleet):
    slow = """do $$ begin
        if not exists (select from effect) then perform pg_sleep(60); end if;
    end $$"""
    _, run = await start(databases, slow, rules=MUCH_LATER, step_timeout_seconds=1)
    await waiting(databases, run)
    assert await databases.lifecycles(run) == {"TimedOut": DATABASES}

    await heal(databases, *databases.databases)
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await attempts(databases, run) == [("Failed", 0, 8), ("Succeeded", 8, 0)]


@pytest.mark.deep
async def test_a_script_that_committed_is_not_repeated_when_its_verify_query_had_no_answer(
    databases: Fleet,
):
    function = """
        create or replace function answered() returns boolean language plpgsql as $$ begin
            if to_regclass('absent') is null then raise 'not yet' using errcode = '40001'; end if;
            return true;
        end $$"""
    for name in databases.databases:
        await databases.execute(name, function)
    options = {"verify": {"sql": "select answered()", "expect": "true"}}
    _, run = await start(
        databases, "insert into effect values (1)", rules=MUCH_LATER, options=options
    )
    await waiting(databases, run)

    for name in databases.databases:
        await databases.execute(name, "create table absent ()")
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await databases.everywhere(COUNT) == [1] * DATABASES


@pytest.mark.deep
async def test_the_targets_of_an_attempt_that_begins_in_a_pause_start_after_it(databases: Fleet):
    name, run = await start(databases, NEEDS_ROW, rules=MUCH_LATER)
    await waiting(databases, run)
    await heal(databases, *databases.databases)
    await databases.call("sp_update_job", job_name=name, paused=True)
    await due_now(databases, run)
    await restart_core(databases)

    async def second_attempt() -> bool:
        return (await row_of(databases, run))["attempt"] == 2

    await until(second_attempt)
    await databases.run("select 1")  # the core reads the pause and works
    assert await databases.lifecycles(run) == {"Created": DATABASES}

    await databases.call("sp_update_job", job_name=name, paused=False)
    assert await databases.ended(run) == "Succeeded"


@pytest.mark.deep
async def test_a_step_that_is_cancelled_while_it_waits_lets_the_next_one_begin(databases: Fleet):
    options = {"onFailure": "continue"}
    effect = "insert into effect values (3)"
    _, run = await start(databases, NEEDS_ROW, effect, rules=MUCH_LATER, options=options)
    await waiting(databases, run)

    await databases.call("sp_stop_step", job_execution_id=run, step_name="step1")

    assert await databases.ended(run) == "Canceled"
    lifecycles = [step["lifecycle"] for step in await databases.steps(run)]
    assert lifecycles == ["Canceled", "Succeeded"]
    assert await attempts(databases, run) == [("Failed", 0, 8), ("Failed", 8, 0)]
    assert (await row_of(databases, run))["not_before"] is None


@pytest.mark.deep
async def test_an_attempt_writes_a_failed_output_without_repeating_the_script(databases: Fleet):
    first = databases.databases[0]
    refusing = """
        drop table if exists report;
        create table report (internal_execution_id uuid, n int);
        create or replace function refuse() returns trigger language plpgsql as $$ begin
            raise 'not now' using errcode = '40001';
        end $$;
        create trigger refuse before insert on report for each row execute function refuse()"""
    await databases.execute(first, refusing)
    script = "insert into effect values (1); select 7 as n"
    _, run = await start(
        databases, script, rules=MUCH_LATER, output_type="SqlDatabase", output_server_name="fleet",
        output_database_name=first, output_schema_name="public", output_table_name="report",
    )  # fmt: skip
    await waiting(databases, run)

    await databases.execute(first, "drop trigger refuse on report")
    await due_now(databases, run)
    await restart_core(databases)

    assert await databases.ended(run) == "Succeeded"
    assert await databases.everywhere(COUNT) == [1] * DATABASES
    assert (await databases.query(first, "select count(*) from report"))[0][0] == DATABASES
    await databases.execute(first, "drop table report")
