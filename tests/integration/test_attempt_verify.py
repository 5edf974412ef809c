"""A verify query decides how an attempt ends, and its script is not repeated for it."""

import asyncio

import pytest

from engine.attempt.cancel_token import CANCELED, HOST_STOPPED, CancelToken
from muster.core import failpoints
from tests.support.attempts import a_target_database, a_cutting_proxy, a_step, renewed, until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

INSERT = "insert into t (v) values ('x')"
SEEN = {"sql": "select 1 from t where v = 'x'"}
SLEEPS = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and usename = $1"


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id serial, v text, public text)"
        )
        yield made


def summary(outcome):
    return outcome.lifecycle, outcome.reason, outcome.retry, outcome.again


async def count(target):
    return await target.value("select count(*) from t")


@pytest.mark.parametrize("options", [{}, {"transaction": "none"}, {"guard": True}], ids=str)
async def test_a_query_that_holds_after_the_commit_lets_the_attempt_succeed(target, options):
    outcome = await target.run(INSERT, verify=SEEN, **options)

    assert summary(outcome) == ("Succeeded", None, False, False)
    assert (outcome.phase, outcome.statement_no) == ("verify", 1)
    assert [each["tag"] for each in outcome.results] == ["INSERT 0 1"]
    assert "verifying" in outcome.timings
    assert target.intended[-1] == "committed"
    assert await count(target) == 1


@pytest.mark.parametrize("guard", [True, "job"])
async def test_a_guard_that_found_the_script_applied_does_not_hide_that_its_effect_is_gone(
    target, guard
):
    step, task = a_step(INSERT, verify=SEEN, guard=guard), target.task()
    first = await target.run(step, task)
    second = await target.run(step, renewed(task))
    await target.execute("truncate t")
    third = await target.run(step, renewed(task))

    assert summary(first) == ("Succeeded", None, False, False)
    assert summary(second) == ("Succeeded", "AlreadyApplied", False, False)
    assert summary(third) == ("Failed", "VerifyFailed", False, False)
    assert await count(target) == 0


@pytest.mark.parametrize(
    "script", ["select 1", "vacuum t", "do $$ begin end $$; select 2"], ids=["read", "alone", "two"]
)
async def test_a_script_that_does_nothing_fails_and_is_not_retried(target, script):
    outcome = await target.run(script, verify=SEEN)

    assert summary(outcome) == ("Failed", "VerifyFailed", False, False)
    assert outcome.message == (
        "The script committed; its verify query does not hold: at least one row expected, no row returned."
    )
    assert (outcome.phase, outcome.sqlstate, outcome.fingerprint) == (
        "verify",
        None,
        "VerifyFailed",
    )


@pytest.mark.parametrize(
    ("verify", "lifecycle"),
    [
        ({"sql": "select from t"}, "Succeeded"),
        ({"sql": "select from t where id < 0"}, "Failed"),
        ({"sql": "select from t where id < 0", "expect": "empty"}, "Succeeded"),
        ({"sql": "select 1", "expect": "empty"}, "Failed"),
        ({"sql": "select count(*) = 1 from t", "expect": "true"}, "Succeeded"),
        ({"sql": "select false", "expect": "true"}, "Failed"),
        ({"sql": "select null::boolean", "expect": "true"}, "Failed"),
        ({"sql": "select 'true'", "expect": "true"}, "Failed"),
        ({"sql": "select true, 1", "expect": "true"}, "Failed"),
        ({"sql": "values (true), (true)", "expect": "true"}, "Failed"),
        ({"sql": "select count(*) from t", "expect": "value", "value": 1}, "Succeeded"),
        ({"sql": "select 0.50", "expect": "value", "value": "0.50"}, "Succeeded"),
        ({"sql": "select 100000::float8, 2", "expect": "value", "value": 100000}, "Succeeded"),
        ({"sql": "select 1 = 1", "expect": "value", "value": True}, "Succeeded"),
        ({"sql": "select null", "expect": "value", "value": "null"}, "Failed"),
        ({"sql": "values (1), (1)", "expect": "value", "value": 1}, "Failed"),
        ({"sql": "select '$(target_database_name)' = current_database() -- x", "expect": "true"}, "Succeeded"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_the_query_must_return(target, verify, lifecycle):
    outcome = await target.run(INSERT, verify=verify)

    assert outcome.lifecycle == lifecycle, outcome.message


async def test_the_query_runs_read_only_with_the_settings_of_the_script(target):
    await target.execute(
        f"create role {target.owner.name}_tenant; grant {target.owner.name}_tenant to {target.owner.name}"
    )
    try:
        settings = {
            "role": f"{target.owner.name}_tenant", "searchPath": "pg_catalog",
            "parameters": {"work_mem": "123kB"},
        }  # fmt: skip
        sql = (
            "select concat_ws('|', current_setting('transaction_read_only'), current_user,"
            " current_setting('search_path'), current_setting('work_mem'),"
            " current_setting('statement_timeout'), current_setting('muster.job_name'))"
        )
        expected = f"on|{target.owner.name}_tenant|pg_catalog, pg_temp|123kB|7s|nightly"
        verify = {"sql": sql, "expect": "value", "value": expected, "timeoutSeconds": 7}
        changed = "set search_path = public; set work_mem = '1MB'"
        for options in ({}, {"transaction": "none"}):
            outcome = await target.run(changed, settings=settings, verify=verify, **options)
            assert outcome.lifecycle == "Succeeded", outcome.message
    finally:
        await target.execute(f"drop role {target.owner.name}_tenant")


async def test_a_function_that_writes_fails_there(target):
    await target.execute(
        f"set role {target.owner.name}; create function w() returns int language sql as "
        "$$ insert into t (v) values ('w') returning id $$"
    )

    outcome = await target.run("select 1", verify={"sql": "select w()"})

    assert summary(outcome) == ("Failed", "VerifyFailed", False, False)
    assert outcome.sqlstate == "25006"
    assert await count(target) == 0


async def test_a_query_with_an_error_that_stays_is_not_asked_again(target):
    outcome = await target.run(INSERT, verify={"sql": "select 1 from missing"}, retryAttempts=3)

    assert summary(outcome) == ("Failed", "VerifyFailed", False, False)
    assert (outcome.sqlstate, outcome.position) == ("42P01", None)
    assert outcome.message.startswith("The script committed; its verify query was not answered: ")
    assert await count(target) == 1


async def test_a_query_that_takes_too_long_is_asked_again_without_the_script(target):
    task = target.task()
    slow = a_step(INSERT, verify={"sql": "select pg_sleep(60)", "timeoutSeconds": 1})
    quick = a_step(INSERT, verify=SEEN)

    first = await target.run(slow, task)
    second = await target.run(quick, renewed(task, script_outcome="committed"))

    assert summary(first) == ("Failed", "VerifyNotAnswered", True, False)
    assert (first.sqlstate, first.checkpoint) == ("57014", {"script": "committed"})
    assert "timeoutSeconds: 1" in first.message
    assert summary(second) == ("Succeeded", None, False, False)
    assert (second.phase, second.results) == ("verify", [])
    assert await count(target) == 1


async def test_a_lock_that_is_not_granted_is_transient(target):
    async with target.connection() as other:
        await other.execute("begin; lock table t")
        step = a_step("select 1", verify=SEEN, settings={"lockTimeoutSeconds": 0.2})
        outcome = await target.run(step)

    assert summary(outcome) == ("Failed", "VerifyNotAnswered", True, False)
    assert outcome.sqlstate == "55P03"


@pytest.mark.parametrize("after", [False, True])
async def test_a_connection_that_is_lost_at_the_query_does_not_repeat_the_script(target, after):
    task = target.task()
    async with a_cutting_proxy(target, word=b"read only", after=after) as server:
        first = await target.run(INSERT, task, server=server, verify=SEEN)
    second = await target.run(INSERT, renewed(task, script_outcome="committed"), verify=SEEN)

    assert summary(first) == ("Failed", "VerifyNotAnswered", True, False)
    assert first.checkpoint == {"script": "committed"}
    assert second.lifecycle == "Succeeded"
    assert await count(target) == 1


async def test_a_commit_whose_reply_was_lost_is_verified_by_the_next_attempt(target):
    async with a_cutting_proxy(target, after=True) as server:
        outcome = await target.run(INSERT, server=server, verify=SEEN)

    assert summary(outcome) == ("Failed", "VerifyNotAnswered", False, True)
    assert outcome.checkpoint == {"script": "committed"}
    assert await count(target) == 1


async def test_an_unknown_outcome_is_answered_by_the_next_attempt(target, monkeypatch):
    monkeypatch.setattr("engine.attempt.transactional.MAX_STATUS_TIMEOUT", 0.5)
    task = target.task()
    async with a_cutting_proxy(target, after=True, recovers=False) as server:
        first = await target.run(INSERT, task, server=server, verify=SEEN)

    assert summary(first) == ("Failed", "OutcomeUnknown", False, True)
    assert first.checkpoint == {"script": "unknown"}
    second = await target.run(INSERT, renewed(task, script_outcome="unknown"), verify=SEEN)
    assert summary(second) == ("Succeeded", "VerifiedAfterUnknown", False, False)
    assert await count(target) == 1


async def test_an_unknown_outcome_without_its_effect_is_a_failure_like_any_other(target):
    task = target.task(script_outcome="unknown")

    outcome = await target.run(INSERT, task, verify=SEEN)
    unasked = await target.run(INSERT, renewed(task), verify={"sql": "select 1 from missing"})

    assert summary(outcome) == ("Failed", "VerifyFailed", True, False)
    assert outcome.checkpoint == {}, "the next attempt sends the script"
    assert summary(unasked) == ("Failed", "OutcomeUnknown", False, False)
    assert await count(target) == 0


async def test_an_unknown_statement_that_still_runs_is_waited_for(target):
    """Otherwise the query would not see what is about to be committed."""
    task, script = target.task(), f"select pg_sleep(2); {INSERT}"
    running = asyncio.create_task(target.run(script, task))
    await until(lambda: target.value(SLEEPS, target.owner.name))

    second = await target.run(script, renewed(task, script_outcome="unknown"), verify=SEEN)

    assert summary(second) == ("Succeeded", "VerifiedAfterUnknown", False, False)
    assert (await running).lifecycle == "Succeeded"


async def test_a_lost_statement_outside_of_a_transaction_is_answered_by_the_next_attempt(target):
    task = target.task()
    async with a_cutting_proxy(target, word=b"insert into", after=True) as server:
        first = await target.run(INSERT, task, server=server, transaction="none", verify=SEEN)
    second = await target.run(
        INSERT, renewed(task, script_outcome="unknown"), transaction="none", verify=SEEN
    )

    assert summary(first) == ("Failed", "OutcomeUnknown", False, True)
    assert summary(second) == ("Succeeded", "VerifiedAfterUnknown", False, False)
    assert await count(target) == 1


async def test_what_holds_already_is_not_done_again(target):
    verify = SEEN | {"skipIfHolds": True}
    for options in ({}, {"transaction": "none"}):
        await target.execute("delete from t")
        first = await target.run(INSERT, verify=verify, **options)
        second = await target.run(INSERT, verify=verify, **options)

        assert summary(first) == ("Succeeded", None, False, False)
        assert summary(second) == ("Succeeded", "AlreadyHolds", False, False)
        assert (second.phase, second.results, second.statement_no) == ("run", [], None)
        assert await count(target) == 1


async def test_a_query_that_fails_before_the_script_does_not_hold(target):
    verify = {"sql": "select 1 from later", "skipIfHolds": True}

    outcome = await target.run(
        "create table later (); insert into later default values", verify=verify
    )

    assert summary(outcome) == ("Succeeded", None, False, False)


async def test_a_query_that_is_not_answered_before_the_script_is_retried_with_it(target):
    verify = {"sql": "select pg_sleep(60)", "skipIfHolds": True, "timeoutSeconds": 1}

    outcome = await target.run(INSERT, verify=verify)

    assert summary(outcome) == ("Failed", "VerifyNotAnswered", True, False)
    assert (outcome.phase, outcome.checkpoint) == ("run", None)
    assert await count(target) == 0


@pytest.mark.parametrize(
    ("reason", "lifecycle", "again"),
    [(CANCELED, "Canceled", False), (HOST_STOPPED, "Canceled", True)],
)
async def test_an_attempt_that_is_stopped_at_the_query_says_that_it_committed(
    target, reason, lifecycle, again
):
    token = CancelToken()
    running = asyncio.create_task(
        target.run(INSERT, token=token, verify={"sql": "select pg_sleep(60)"})
    )
    await until(lambda: target.value(SLEEPS, target.owner.name))
    token.cancel(reason)
    outcome = await running

    assert summary(outcome) == (lifecycle, "VerifyNotAnswered", False, again)
    assert outcome.checkpoint == {"script": "committed"}
    assert "The script committed" in outcome.message


async def test_the_step_runs_out_of_time_at_the_query(target):
    outcome = await target.run(INSERT, within=1.0, verify={"sql": "select pg_sleep(60)"})

    assert (outcome.lifecycle, outcome.reason) == ("TimedOut", "VerifyNotAnswered")
    assert await count(target) == 1


async def test_a_variable_without_a_value_is_noticed_before_the_script(target):
    outcome = await target.run(INSERT, verify={"sql": "select '$(target_label.tier)'"})

    assert summary(outcome) == ("Failed", "StatementFailed", False, False)
    assert await count(target) == 0


async def test_a_reply_that_is_too_large_is_none(target):
    outcome = await target.run(INSERT, verify={"sql": "select generate_series(1, 200000)"})

    assert summary(outcome) == ("Failed", "VerifyFailed", False, False)
    assert "more rows or bytes" in outcome.message


async def test_a_rehearsal_asks_nothing_afterwards(target):
    task = target.task(overrides={"rollback": True})

    outcome = await target.run(INSERT, task, verify=SEEN)

    assert summary(outcome) == ("Succeeded", None, False, False)


async def test_a_task_that_was_revoked_asks_nothing(target):
    intents = []

    async def intend(xact):
        intents.append(xact)
        return xact != "committed"

    with failpoints.armed({}) as armed:
        outcome = await target.run(INSERT, intend=intend, verify=SEEN)

    assert outcome is None
    assert intents[-1] == "committed"
    assert "host.verified" not in armed.hits


async def test_the_session_is_lent_again_afterwards(target):
    for _ in range(3):
        await target.run(INSERT, verify=SEEN)

    assert await target.ours() == 1
