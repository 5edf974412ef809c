"""Statements that commit by themselves: what was done stays, and is told as it is."""

import asyncio

import msgspec
import pytest

from tests.support.attempts import (
    a_target_database,
    a_cutting_proxy,
    a_step,
    record_messages,
    renewed,
    until,
)

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id int, v text); insert into t values (1), (1)"
        )
        yield made


def told(outcome):
    return outcome.lifecycle, outcome.reason, outcome.retry


async def count(target):
    return await target.value("select count(*) from t")


async def test_a_vacuum_runs_alone(target):
    outcome = await target.run("vacuum (analyze) t")

    assert told(outcome) == ("Succeeded", None, False)
    assert [each["tag"] for each in outcome.results] == ["VACUUM"]
    assert target.intended == ["autocommit"]


async def test_an_intent_that_is_refused_sends_nothing(target):
    async def refused(_):
        return False

    assert await target.run("insert into t values (2)", transaction="none", intend=refused) is None
    assert await count(target) == 2


async def test_an_intent_that_nobody_heard_of_sends_nothing_and_is_tried_again(target):
    async def untold(_):
        return None

    outcome = await target.run("insert into t values (2)", transaction="none", intend=untold)

    assert told(outcome) == ("Canceled", "HostStopped", False)
    assert outcome.again
    assert await count(target) == 2


async def test_each_statement_commits_and_the_last_one_done_is_known(target):
    outcome = await target.run(
        "insert into t values (2); insert into t values (3); select 1/0; insert into t values (4)",
        transaction="none",
    )

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert (outcome.sqlstate, outcome.statement_no) == ("22012", 2)
    assert outcome.last_message == "division by zero. Statements 1 to 2 stay committed."
    assert await count(target) == 4


@pytest.mark.parametrize(
    ("script", "options", "retry"),
    [
        ("select clash(); select 1", {}, True),
        ("do $$ begin raise exception 'x' using errcode = '40001'; end $$; select 1", {}, False),
        ("select 1; do $$ begin raise exception 'x' using errcode = '40001'; end $$", {}, False),
        (
            "select 1; do $$ begin raise exception 'x' using errcode = '40001'; end $$",
            {"idempotent": True},
            True,
        ),
        ("select 1/0; select 1", {"idempotent": True}, False),
    ],
)
async def test_only_what_left_nothing_or_may_be_repeated_is_tried_again(
    target, script, options, retry
):
    await target.execute(
        "create function clash() returns void language plpgsql as"
        " $$ begin raise exception 'x' using errcode = '40001'; end $$"
    )

    outcome = await target.run(script, transaction="none", **options)

    assert told(outcome) == ("Failed", "StatementFailed", retry)


async def test_what_a_procedure_committed_before_it_failed_is_not_repeated(target):
    await target.execute(
        f"set role {target.owner.name}; create procedure half() language plpgsql as"
        " $$ begin insert into t values (7); commit; raise exception 'x' using errcode = '40001'; end $$"
    )

    outcome = await target.run("call half()", transaction="none")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert outcome.last_message == "x. What it committed inside itself stays."
    assert await count(target) == 3


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("begin; insert into t values (2)", 2),
        (
            "select 'a' -- one literal to the server\n'b'; insert into t values (2); commit; select 1/0",
            3,
        ),
    ],
)
async def test_a_script_that_begins_or_ends_a_transaction_ends_as_unknown(target, script, rows):
    outcome = await target.run(script, transaction="none", idempotent=True)

    assert told(outcome) == ("Failed", "OutcomeUnknown", False)
    assert "began or ended a transaction itself" in outcome.message
    assert await count(target) == rows


async def test_what_is_committed_is_not_repeated_though_what_stopped_us_came_between(target):
    """While the next one's lock timeout was set."""
    session = await target.lend(direct=True)
    say = session.execute

    async def interrupted(text, **more):
        if text == "set lock_timeout=0":
            text = "do $$ begin raise exception 'enough' using errcode = '57014'; end $$"
        return await say(text, **more)

    session.execute = interrupted
    target.sessions.give_back(session)

    outcome = await target.run("insert into t values (2); vacuum t", transaction="none")

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert outcome.last_message == "enough. Statement 1 stays committed."


async def test_each_statement_has_the_lock_timeout_of_its_kind(target):
    await target.execute("create table seen (at int, lock_timeout text)")
    seen = "insert into seen values ({}, current_setting('lock_timeout'))"
    await target.execute(f"grant all on seen to {target.owner.name}")
    step = a_step(
        f"{seen.format(1)}; create index concurrently i on t (id); {seen.format(2)}",
        transaction="none",
    )
    heard = record_messages(session := await target.lend(direct=True))
    target.sessions.give_back(session)

    outcome = await target.run(step)

    assert outcome.lifecycle == "Succeeded"
    assert await target.value("select array_agg(lock_timeout order by at) from seen") == [
        "5s",
        "5s",
    ]
    assert [text for text in heard if text.startswith("set lock_timeout=0")] == [
        "set lock_timeout=0"
    ]


async def test_the_settings_hold_for_the_session_and_no_longer(target):
    task = target.task()
    outcome = await target.run(
        "select current_setting('application_name'), current_setting('muster.job_name'), pg_backend_pid();"
        "select current_setting('lock_timeout')",
        task,
        transaction="none",
    )
    assert outcome.results[0]["rows"][0][:2] == [f"muster {task.invocation_id.hex}", "nightly"]
    assert outcome.results[1]["rows"] == [["5s"]]
    session = await target.lend()
    [found] = await session.query(
        "select current_setting('application_name'), current_setting('lock_timeout'),"
        " current_setting('muster.job_name'), pg_backend_pid()"
    )
    assert found.rows == [["muster", "0", "", outcome.results[0]["rows"][0][2]]]
    target.sessions.give_back(session)


async def test_a_second_attempt_does_not_run_beside_the_first(target):
    task, step = target.task(), a_step("select pg_sleep(30); select 1", transaction="none")
    first = asyncio.create_task(target.run(step, task))
    await until(sleeping(target))

    second = await target.run(step, renewed(task))
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first

    assert told(second) == ("Failed", "LockTimeout", True)


def sleeping(target):
    async def check():
        return await target.value(
            "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1",
            target.owner.name,
        )

    return check


@pytest.mark.parametrize(("options", "retry"), [({}, False), ({"idempotent": True}, True)])
async def test_a_line_that_breaks_leaves_the_outcome_unknown(target, options, retry):
    async with a_cutting_proxy(target, word=b"values (3)", recovers=False) as server:
        outcome = await target.run(
            "insert into t values (2); insert into t values (3)",
            transaction="none", server=server, **options,
        )  # fmt: skip

    assert told(outcome) == ("Failed", "OutcomeUnknown", retry)
    assert outcome.statement_no == 1
    assert await count(target) == 3


async def test_a_line_that_breaks_before_the_first_statement_is_tried_again(target):
    async with a_cutting_proxy(target, word=b"set lock_timeout", recovers=False) as server:
        outcome = await target.run("vacuum t", server=server)

    assert told(outcome) == ("Failed", "ConnectionLost", True)


async def test_an_index_that_could_not_be_built_is_named(target):
    task = target.task()
    outcome = await target.run("create unique index concurrently once on t (id)", task)
    again = await target.run(
        "create unique index concurrently if not exists twice on t (id)", retryOn=["23"]
    )

    assert told(outcome) == ("Failed", "StatementFailed", False)
    assert outcome.sqlstate == "23505"
    assert outcome.message.endswith("INVALID and in need of DROP INDEX or REINDEX: public.once.")
    assert outcome.last_message == outcome.message
    # Another try would find it there and call it done.
    assert told(again) == ("Failed", "StatementFailed", False)
    assert "public.twice" in again.message and "public.once" not in again.message


async def test_an_index_whose_building_was_ended_is_named(target):
    async with target.connection() as other:
        await other.execute("begin; insert into t values (9)")
        running = asyncio.create_task(target.run("create index concurrently late on t (v)"))
        seen = (
            "select pid from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'"
            " and query ~ '^create index'"
        )
        pid = await until(lambda: target.value(seen, target.owner.name))
        await target.execute(f"select pg_terminate_backend({pid})")
        outcome = await running

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", "OutcomeUnknown", False)
    assert "public.late" in outcome.message


async def test_a_pooler_that_lends_by_transactions_is_no_place_for_it(target):
    pooled = msgspec.structs.replace(target.server, pooling="transaction")
    passed = msgspec.structs.replace(pooled, direct_host=target.targets.host)

    with pytest.raises(Exception, match="directHost") as refused:
        await target.run("vacuum t", server=pooled)
    direct = await target.run("vacuum t", server=passed)
    together = await target.run("select 1", server=pooled)

    assert refused.value.code == "TransactionModeNotPossible"
    assert direct.lifecycle == together.lifecycle == "Succeeded"


async def test_nor_for_what_it_would_leave_behind(target):
    pooled = msgspec.structs.replace(target.server, pooling="transaction")
    passed = msgspec.structs.replace(
        pooled, port=1, direct_host=f"{target.targets.host}:{target.server.port}"
    )

    with pytest.raises(Exception, match="SET without LOCAL") as refused:
        await target.run("set search_path = evil; select 1", server=pooled)
    local = await target.run("set local search_path = evil; select 1", server=pooled)
    direct = await target.run("set search_path = evil; select 1", server=passed)

    assert refused.value.code == "TransactionModeNotPossible"
    assert local.lifecycle == direct.lifecycle == "Succeeded"


async def test_what_commits_by_itself_is_not_rehearsed(target):
    outcome = await target.run(
        "insert into t values (5)", target.task(overrides={"rollback": True}), transaction="none"
    )

    assert told(outcome) == ("Failed", "TransactionModeNotPossible", False)
    assert await count(target) == 2


async def test_a_reading_step_writes_nothing_here_either(target):
    outcome = await target.run(
        "select 1; insert into t values (5)", transaction="none", settings={"access": "readOnly"}
    )

    assert (outcome.sqlstate, outcome.reason, outcome.retry) == ("25006", "StatementFailed", False)
    assert await count(target) == 2


async def test_a_guard_has_no_transaction_to_stand_in(target):
    alone = a_step("insert into t values (5); select 1", transaction="none", guard=True)
    vacuum = a_step("vacuum t", guard=True)
    reading = a_step("select 1", guard=True, settings={"access": "readOnly"})

    assert all(
        "guard needs a script that writes" in step.refusal for step in (alone, vacuum, reading)
    )
    assert not a_step("insert into t values (5)", guard=True).refusal
