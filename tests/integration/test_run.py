"""From a start to a true result on every target: the engine and its hosts on real databases."""

import asyncio
import json
import secrets
from uuid import UUID, uuid4

import asyncpg
import pytest

from muster.core import failpoints
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, account=account) as made:
        yield made


async def test_a_job_runs_step_by_step_on_every_target(fleet: Fleet):
    run = await fleet.run("create table t (n int)", "insert into t select 7 returning n")

    assert await fleet.lifecycle(run) == "Succeeded"
    assert await fleet.lifecycles(run) == {"Succeeded": 6}
    assert await fleet.everywhere("select n from t") == [7, 7, 7]
    one = (await fleet.tasks(run))[-1]
    assert (one["attempt"], one["lifecycle"], one["sqlstate"]) == (1, "Succeeded", None)
    assert one["backend_pid"] and one["server_version"] >= 120000 and one["host_id"]
    assert one["xact_id"] and one["start_time"] <= one["end_time"]
    first, second = await fleet.steps(run)
    assert first["end_time"] <= second["start_time"], (
        "the second step waits for the first everywhere"
    )


@pytest.mark.parametrize(
    ("script", "lifecycle", "reason", "sqlstate"),
    [
        ("select 1/0", "Failed", "StatementFailed", "22012"),
        ("create table t (n int); select 1/0", "Failed", "StatementFailed", "22012"),
        (
            "create table u (n int unique deferrable initially deferred);"
            "insert into u values (1), (1)",
            "Failed",
            "StatementFailed",
            "23505",
        ),
        ("do $$ begin raise warning 'careful'; end $$", "Succeeded", None, None),
        ("select nothing from nowhere", "Failed", "StatementFailed", "42P01"),
    ],
    ids=["1/0", "second statement", "at commit", "warning", "missing table"],
)
async def test_the_status_is_true(fleet: Fleet, script, lifecycle, reason, sqlstate):
    run = await fleet.run(script)

    assert await fleet.lifecycle(run) == lifecycle
    assert await fleet.lifecycles(run) == {lifecycle: 3}
    assert {(t["attempt"], t["sqlstate"], t["end_reason"]) for t in await fleet.tasks(run)} == {
        (1, sqlstate, reason)
    }
    left = await fleet.everywhere("select count(*) from pg_class where relname in ('t', 'u')")
    assert left == [0, 0, 0], "what failed left nothing behind"


async def test_one_that_fails_fails_alone_and_stops_the_next_step(fleet: Fleet):
    await fleet.query(1, "create table t ()")

    run = await fleet.run("create table t ()", "create table never ()")

    assert await fleet.lifecycles(run) == {"Succeeded": 2, "Failed": 1}
    steps = await fleet.steps(run)
    assert [step["lifecycle"] for step in steps] == ["Failed"], "the second was never reached"
    assert steps[0]["last_message"] == "2 of 3 targets succeeded, 1 failed."
    assert await fleet.lifecycle(run) == "Failed"


async def test_a_failure_may_be_passed_over(fleet: Fleet):
    await fleet.job("goes on", "select 1/0", options={"onFailure": "continue"})
    await fleet.call(
        "sp_add_jobstep", job_name="goes on", step_name="after", command="create table after ()",
        target_group_name="everything",
    )  # fmt: skip

    run = await fleet.start("goes on")
    await fleet.ended(run)

    assert [step["lifecycle"] for step in await fleet.steps(run)] == ["Failed", "Succeeded"]
    assert await fleet.lifecycle(run) == "Failed"


async def test_a_deadlock_victim_tries_again_until_it_succeeds(fleet: Fleet):
    await fleet.query(0, "create sequence tries")
    for name in fleet.databases[1:]:
        await fleet.query(name, "create sequence tries start 10")
    script = (
        "do $$ begin if nextval('tries') < 3 then"
        " raise exception 'not yet' using errcode = '40P01'; end if; end $$"
    )

    run = await fleet.run(script, initial_retry_interval_seconds=1, options={"jitter": 0})

    assert await fleet.lifecycles(run) == {"Succeeded": 3}
    attempts = [(t["attempt"], t["lifecycle"]) for t in await fleet.tasks(run) if t["ordinal"] == 1]
    assert attempts == [(1, "Failed"), (2, "Failed"), (3, "Succeeded")]
    assert (await fleet.targets_of(run))[0]["attempts"] == 3


async def why(fleet: Fleet, run: UUID, ordinal: int) -> dict:
    """As the engine answers it."""
    asked = uuid4()
    told = json.dumps({"run": str(run), "stepId": 1, "ordinal": ordinal})
    await fleet.root.execute(
        "select jobs_internal.create_request($1, 'why', $2::text::jsonb)", asked, told
    )
    read = "select answer::text from jobs_internal.request where request_id = $1"
    await until(lambda: fleet.root.fetchval(read, asked))
    return json.loads(await fleet.root.fetchval(read, asked))


async def test_who_blocks_a_running_attempt_is_seen_while_it_runs(fleet: Fleet):
    for name in fleet.databases:
        await fleet.query(name, "create table t ()")
    url = fleet.targets.url(fleet.databases[1], fleet.targets.administrator)
    tenant = await asyncpg.connect(url, server_settings={"application_name": "checkout"})
    await tenant.execute("begin; lock table t in share mode")
    settings = {"settings": {"lockTimeoutSeconds": 0}}
    await fleet.job("blocked", "insert into t default values", options=settings)

    run = await fleet.start("blocked")

    async def blockers(ordinal: int) -> list[dict]:
        return (await why(fleet, run, ordinal))["details"].get("blockers")

    async def seen() -> bool:
        return bool(await blockers(2))

    await until(seen)
    [blocker] = await blockers(2)
    assert (blocker["pid"], blocker["application_name"]) == (tenant.get_server_pid(), "checkout")
    assert await blockers(1) is None, "it is over"
    await tenant.close()
    assert await fleet.ended(run) == "Succeeded"


async def test_retries_come_to_an_end(fleet: Fleet):
    run = await fleet.run(
        "do $$ begin raise exception 'never' using errcode = '40001'; end $$", retry_attempts=1
    )

    assert await fleet.lifecycles(run) == {"Failed": 3}
    assert [task["attempt"] for task in await fleet.tasks(run)] == [1, 2] * 3


async def test_the_time_of_a_step_covers_all_its_attempts(fleet: Fleet):
    slow = await fleet.run("select pg_sleep(60)", step_timeout_seconds=1)
    waiting = await fleet.run(
        "do $$ begin raise exception 'no' using errcode = '40001'; end $$",
        step_timeout_seconds=2, initial_retry_interval_seconds=60,
    )  # fmt: skip

    for run in (slow, waiting):
        assert await fleet.lifecycle(run) == "TimedOut"
        assert await fleet.lifecycles(run) == {"TimedOut": 3}


async def test_a_missing_database_and_a_missing_credential_fail_alone(fleet: Fleet):
    await fleet.call(
        "sp_add_target_group_member", target_group_name="everything", target_type="SqlDatabase",
        server_name="fleet", database_name="not_there",
    )  # fmt: skip

    run = await fleet.run("select 1", retry_attempts=0)

    assert await fleet.lifecycles(run) == {"Succeeded": 3, "Failed": 1}
    bad = next(t for t in await fleet.targets_of(run) if t["lifecycle"] == "Failed")
    assert bad["end_reason"] == "ConnectFailed" and "does not exist" in bad["last_message"]


async def test_an_empty_group_fails_unless_it_may_be_empty(fleet: Fleet):
    await fleet.call("sp_add_target_group", target_group_name="nobody")

    refused = await fleet.run("select 1", group="nobody")
    allowed = await fleet.run("select 1", group="nobody", options={"allowEmpty": True})

    assert (await fleet.steps(refused))[0]["end_reason"] == "NoTargets"
    assert [await fleet.lifecycle(run) for run in (refused, allowed)] == ["Failed", "Succeeded"]


async def running(fleet: Fleet, run) -> list:
    await until(lambda: fleet.in_state(run, "InProgress", 3))
    return await fleet.tasks(run)


async def test_a_cancelled_run_stops_at_the_targets(fleet: Fleet):
    await fleet.job("slow", "create table t (); select pg_sleep(60)")
    run = await fleet.start("slow")
    tasks = await running(fleet, run)

    await fleet.root.execute("select jobs.sp_stop_job($1, 'enough')", run)
    await fleet.ended(run, 15)

    assert await fleet.lifecycle(run) == "Canceled"
    assert await fleet.lifecycles(run) == {"Canceled": 3}
    active = "select from pg_stat_activity where pid = any($1) and state = 'active'"
    assert await fleet.query("postgres", active, [task["backend_pid"] for task in tasks]) == []
    order = await fleet.root.fetchrow("select * from jobs_internal.cancellation")
    assert (
        order["reason"] == "enough"
        and order["completed_at"]
        and order["cancel_method"] == "protocol"
    )


async def test_one_step_and_one_target_can_be_cancelled(fleet: Fleet):
    await fleet.job("slow", "select pg_sleep(60)")
    run = await fleet.start("slow")
    await running(fleet, run)
    one = await fleet.root.fetchval(
        "select target_id from jobs_internal.snapshot_target where ordinal = 2"
    )

    await fleet.root.execute("select jobs.sp_stop_target($1, 'step1', $2)", run, one)

    async def only_that_one() -> bool:
        return (await fleet.lifecycles(run)) == {"InProgress": 2, "Canceled": 1}

    await until(only_that_one)
    await fleet.root.execute("select jobs.sp_stop_step($1, 'step1', 'all of it')", run)
    await fleet.ended(run, 15)
    assert await fleet.lifecycles(run) == {"Canceled": 3}
    open_orders = "select count(*) from jobs_internal.cancellation where completed_at is null"

    async def closed() -> bool:
        return await fleet.root.fetchval(open_orders) == 0

    await until(closed)


async def test_waiting_targets_are_cancelled_at_once(fleet: Fleet):
    """In the retry's pause, and while they wait for a slot."""
    await fleet.job(
        "retrying", "do $$ begin raise exception 'no' using errcode = '40001'; end $$",
        initial_retry_interval_seconds=60,
    )  # fmt: skip
    run = await fleet.start("retrying")

    async def waits() -> bool:
        return (await fleet.lifecycles(run))["WaitingForRetry"] == 3

    await until(waits)
    await fleet.root.execute("select jobs.sp_stop_job($1)", run)
    await fleet.ended(run, 5)
    assert await fleet.lifecycles(run) == {"Canceled": 3}


@pytest.mark.parametrize("overlap", ["skipTarget", "skipExecution", "allow"])
async def test_runs_of_one_job_that_overlap(fleet: Fleet, overlap):
    await fleet.job("slow", "select pg_sleep(2)")
    await fleet.root.execute("update jobs_internal.job set overlap = $1", overlap)
    first = await fleet.start("slow")
    await running(fleet, first)

    second = await fleet.start("slow")
    await fleet.ended(second)
    await fleet.ended(first)

    assert await fleet.lifecycle(first) == "Succeeded"
    wanted = {"skipTarget": "Skipped", "skipExecution": "Skipped", "allow": "Succeeded"}
    assert await fleet.lifecycle(second) == wanted[overlap]
    targets = {"skipTarget": {"Skipped": 3}, "skipExecution": {}, "allow": {"Succeeded": 3}}
    assert await fleet.lifecycles(second) == targets[overlap]


async def test_a_paused_account_starts_nothing_and_goes_on_when_resumed(fleet: Fleet):
    await fleet.job("nightly", "select 1")
    await fleet.root.execute("update jobs_internal.job set paused = true")
    await fleet.root.execute("update jobs_internal.job set paused = false")
    run = await fleet.start("nightly")
    await fleet.ended(run)
    await fleet.root.execute("select jobs.sp_pause()")
    with pytest.raises(asyncpg.PostgresError, match="paused"):
        await fleet.start("nightly")
    await fleet.root.execute("select jobs.sp_resume()")

    assert await fleet.ended(await fleet.start("nightly")) == "Succeeded"


async def test_a_pause_is_heard_before_the_next_heartbeat(
    settings, db, account, targets, tmp_path, monkeypatch
):
    monkeypatch.setattr("tests.support.fleet.HEARTBEAT", 60.0)
    async with start_fleet(settings, db, targets, tmp_path, account=account) as fleet:
        await fleet.job("nightly", "select pg_sleep(0.2)", max_parallelism=1)
        run = await fleet.start("nightly")
        await until(lambda: fleet.in_state(run, "InProgress", 1))

        await fleet.root.execute("select jobs.sp_pause()")

        async def held_back() -> bool:
            return (await why(fleet, run, 3))["waitReason"] == "AccountPaused"

        await until(held_back)
        await until(lambda: fleet.in_state(run, "InProgress", 0))
        assert (await fleet.lifecycles(run))["Created"] > 0
        await fleet.root.execute("select jobs.sp_resume()")
        assert await fleet.ended(run) == "Succeeded"


async def test_a_script_that_came_by_sql_is_judged_before_it_runs(fleet: Fleet):
    run = await fleet.run(
        "begin; create table t ()", options={"transaction": "none"}, retry_attempts=3
    )

    assert await fleet.lifecycles(run) == {"Failed": 3}
    tasks = await fleet.tasks(run)
    assert {(task["attempt"], task["end_reason"]) for task in tasks} == {(1, "ScriptRefused")}
    assert "Line 1, column 1: BEGIN at top level" in tasks[0]["message"]
    assert await fleet.everywhere("select to_regclass('t')::text") == [None] * 3


async def test_what_a_cancellation_took_is_told_of_its_own_target(fleet: Fleet):
    await fleet.job("slow", "select pg_sleep(60)", max_parallelism=1)
    run = await fleet.start("slow")
    await until(lambda: fleet.in_state(run, "InProgress", 1))
    ids = await fleet.root.fetch(
        "select target_id from jobs_internal.snapshot_target order by ordinal"
    )
    orders = "select ordinal, cancel_method from jobs_internal.cancellation where completed_at is not null"

    async def stop(ordinal: int) -> dict[int, str]:
        target = ids[ordinal - 1][0]
        await fleet.root.execute("select jobs.sp_stop_target($1, 'step1', $2)", run, target)
        await until(lambda: fleet.root.fetchval(f"{orders} and ordinal = $1", ordinal))
        return dict(await fleet.root.fetch(orders))

    assert await stop(1) == {1: "protocol"}
    assert await stop(3) == {1: "protocol", 3: "nothing"}, "it had not begun"
    await fleet.root.execute("select jobs.sp_stop_job($1)", run)
    await fleet.ended(run, 15)


async def test_many_databases_share_a_small_budget(settings, db, account, targets, tmp_path):
    few = {"databases": 12, "max_connections": 4}
    async with start_fleet(settings, db, targets, tmp_path, account=account, **few) as fleet:
        await fleet.job("nightly", "select pg_sleep(0.05)")
        run = await fleet.start("nightly")
        most = 0
        while await fleet.lifecycle(run) != "Succeeded":
            most = max(most, await fleet.sessions())
            await asyncio.sleep(0.005)

        assert await fleet.lifecycles(run) == {"Succeeded": 12}
        assert 2 <= most <= 4


async def test_a_new_size_reaches_the_hosts_that_are_there(
    settings, db, account, targets, tmp_path
):
    later = {"databases": 6, "start": False}
    async with start_fleet(settings, db, targets, tmp_path, account=account, **later) as fleet:
        small = await fleet.core(capacity=2)
        await fleet.host(capacity=2)
        await fleet.job("slow", "select pg_sleep(60)")
        run = await fleet.start("slow")

        async def at_once(many: int) -> bool:
            return (await fleet.lifecycles(run))["InProgress"] == many

        await until(lambda: at_once(2))
        before = [task["invocation_id"] for task in await fleet.tasks(run)]
        await fleet.end(small)
        await fleet.core(capacity=5)
        await until(lambda: at_once(5))

        assert set(before) <= {task["invocation_id"] for task in await fleet.tasks(run)}
        await fleet.root.execute("select jobs.sp_stop_job($1)", run)
        await fleet.ended(run, 15)


async def test_a_schema_is_a_target(fleet: Fleet):
    for name in fleet.databases:
        await fleet.query(name, "create schema tenant_a")
        await fleet.query(name, "create schema tenant_b")
    await fleet.call("sp_add_target_group", target_group_name="schemas")
    for name in fleet.databases:
        await fleet.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=name, schema_pattern="tenant_%",
        )  # fmt: skip

    run = await fleet.run("create table t as select '$(target_schema_name)' as s", group="schemas")

    assert await fleet.lifecycles(run) == {"Succeeded": 6}
    assert await fleet.everywhere("select s from tenant_b.t") == ["tenant_b"] * 3


async def a_credential(fleet: Fleet, name: str, user: str, password: str) -> None:
    (fleet.folder / name).write_text(password)
    await fleet.root.execute(
        "insert into jobs_internal.credential (name, username, secret, created_by, modified_by)"
        " values ($1, $2, $3, 'test', 'test')",
        name,
        user,
        f"file:{fleet.folder / name}",
    )


@pytest.fixture
async def weak_login(fleet: Fleet):
    """A login that may not enter the first of the databases."""
    name = f"weak_{secrets.token_hex(4)}"
    await fleet.query(1, f"create role {name} login password 'geheim'")
    await fleet.query(1, f'revoke connect on database "{fleet.databases[0]}" from public')
    await a_credential(fleet, "weak", name, "geheim")
    yield name
    await fleet.query(1, f"drop role {name}")


async def test_a_right_to_connect_that_is_missing_is_told_kept_and_repeated_as_the_step_wants(
    fleet: Fleet, weak_login: str
):
    run = await fleet.run(
        "select 1", credential_name="weak", options={"retryOn": ["42"]}, retry_attempts=1
    )

    assert await fleet.lifecycles(run) == {"Failed": 1, "Succeeded": 2}
    tries = [task for task in await fleet.tasks(run) if task["lifecycle"] == "Failed"]
    assert [(each["attempt"], each["sqlstate"]) for each in tries] == [(1, "42501"), (2, "42501")]
    grant = f'GRANT CONNECT ON DATABASE "{fleet.databases[0]}" TO "{weak_login}";'
    assert tries[0]["message"].endswith(grant) and "CONNECT privilege" in tries[0]["detail"]


async def test_a_database_that_does_not_tell_its_schemas_fails_alone(fleet: Fleet, weak_login: str):
    await fleet.call("sp_add_target_group", target_group_name="schemas")
    for name in fleet.databases:
        await fleet.query(name, "create schema tenant_a")
        await fleet.query(name, "grant usage on schema tenant_a to public")
        await fleet.call(
            "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
            server_name="fleet", database_name=name, schema_pattern="tenant_%",
            refresh_credential_name="weak",
        )  # fmt: skip

    run = await fleet.run("create table t ()", group="schemas", credential_name="fleet")

    first, *others = await fleet.targets_of(run)
    assert (first["lifecycle"], first["end_reason"]) == ("Failed", "TargetsUnresolved")
    assert "its schemas were not visited. ConnectNotGranted: " in first["last_message"]
    assert [each["lifecycle"] for each in others] == ["Succeeded"] * 2
    assert await fleet.query(0, "select 1 from pg_tables where tablename = 't'") == []


async def schemas_of_the_first(fleet: Fleet, **more) -> None:
    """A group whose server must be asked, and nobody is named for that but in `more`."""
    await fleet.root.execute("update jobs_internal.server_directory set job_credential = null")
    await fleet.query(0, "create schema tenant_a")
    await fleet.call("sp_add_target_group", target_group_name="asked")
    await fleet.call(
        "sp_add_target_group_member", target_group_name="asked", target_type="SqlSchema",
        server_name="fleet", database_name=fleet.databases[0], schema_pattern="tenant_%", **more,
    )  # fmt: skip


async def test_a_step_s_own_login_may_list_its_targets(fleet: Fleet):
    await schemas_of_the_first(fleet)

    run = await fleet.run("select 1", group="asked", credential_name="fleet")

    assert await fleet.lifecycles(run) == {"Succeeded": 1}


@pytest.mark.parametrize("named_in", ["step", "group"])
async def test_why_a_server_was_not_listed_is_told(fleet: Fleet, named_in: str):
    await a_credential(fleet, "wrong", fleet.targets.administrator.name, "not the password")
    await schemas_of_the_first(fleet, refresh_credential_name="wrong")
    if named_in == "group":
        await fleet.root.execute(
            "update jobs_internal.target_group_member m set credential_id = c.credential_id"
            " from jobs_internal.credential c where c.name = 'fleet' and m.target_type = 'SqlSchema'"
        )
    login = {"credential_name": "fleet"} if named_in == "step" else {}

    run = await fleet.run("select 1", group="asked", **login)

    (target,) = await fleet.targets_of(run)
    assert (target["lifecycle"], target["end_reason"]) == ("Failed", "TargetsUnresolved")
    assert "not visited. TargetAuthenticationFailed: " in target["last_message"]


async def test_a_guarded_step_has_one_effect(fleet: Fleet):
    for name in fleet.databases:
        await fleet.query(name, "create table t (n int)")

    run = await fleet.run("insert into t values (1)", options={"guard": True})

    assert await fleet.lifecycles(run) == {"Succeeded": 3}
    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]


async def test_what_is_only_reserved_is_cancelled_without_its_host(fleet: Fleet):
    """The host never says anything about it, and the core does not wait for that."""
    with failpoints.armed({"host.before_start": "sleep:8"}):
        await fleet.job("slow", "create table t ()")
        run = await fleet.start("slow")

        async def reserved() -> bool:
            return [task["lifecycle"] for task in await fleet.tasks(run)] == ["Created"] * 3

        await until(reserved)
        await fleet.root.execute("select jobs.sp_stop_job($1)", run)
        await fleet.ended(run, 6)

    core = fleet.alive[0].living
    assert (await fleet.lifecycles(run), await fleet.tasks(run)) == ({"Canceled": 3}, [])
    assert core.hosting.cluster_state.run_state.running == {} and core.hosting.restarts["core"] == 0
