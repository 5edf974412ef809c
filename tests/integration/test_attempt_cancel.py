"""Stopping an attempt in each of its phases, and what that takes."""

import asyncio

import msgspec
import pytest

from engine.attempt import canceller
from engine.attempt.cancel_token import CancelToken
from tests.support.attempts import a_target_database, a_cutting_proxy, until
from tests.support.tcp_proxy import proxy_to

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]

STUBBORN = """do $$
begin
    loop
        begin
            perform pg_sleep(60);
        exception when query_canceled then
            null;
        end;
    end loop;
end $$"""


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id int primary key, v text)"
        )
        yield made


def told(outcome):
    return outcome.lifecycle, outcome.reason, outcome.retry, outcome.again


async def rows(target):
    return [row["id"] for row in await target.fetch("select id from t order by id")]


def sleeping(target):
    async def check():
        return await target.value(
            "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1",
            target.owner.name,
        )

    return check


async def stopped_while_running(target, script, reason="Canceled", **how):
    token = CancelToken()
    running = asyncio.create_task(target.run(script, token=token, **how))
    pid = await until(sleeping(target))
    token.cancel(reason)
    return await running, pid


async def gone(target, pid):
    async def check():
        return not await target.value("select count(*) from pg_stat_activity where pid = $1", pid)

    await until(check)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Canceled", ("Canceled", "Canceled", False, False)),
        ("HostStopped", ("Canceled", "HostStopped", False, True)),
        ("TimedOut", ("TimedOut", "TimedOut", True, False)),
    ],
)
async def test_a_running_statement_is_cancelled_by_the_protocol(target, reason, expected):
    outcome, pid = await stopped_while_running(
        target, "insert into t values (1); select pg_sleep(60)", reason
    )

    assert told(outcome) == expected
    assert outcome.cancel_method == "protocol"
    assert outcome.statement_no == 1
    assert await rows(target) == []
    # What was signalled is not lent again: the signal may come late.
    await gone(target, pid)


async def test_a_wish_before_the_start_is_obeyed_after_it(target):
    token = CancelToken()
    token.cancel("Canceled")

    outcome = await target.run("insert into t values (1)", token=token)

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.cancel_method is None
    assert len(target.started) == 1
    assert await rows(target) == []


async def test_a_wish_during_the_start_sends_nothing(target):
    token = CancelToken()

    async def start():
        token.cancel("HostStopped")
        return True

    outcome = await target.run("insert into t values (1)", token=token, start=start)

    assert told(outcome) == ("Canceled", "HostStopped", False, True)
    assert outcome.statement_no is None


async def test_a_wish_during_the_intent_rolls_back(target):
    token = CancelToken()

    async def intend(_):
        token.cancel("Canceled")
        return True

    outcome = await target.run("insert into t values (1)", token=token, intend=intend)

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.cancel_method is None
    assert await rows(target) == []


async def test_a_commit_that_had_won_is_a_success(target):
    """The answer is held back until the wish has come."""
    token = CancelToken()
    async with a_cutting_proxy(target, after=True) as server:
        running = asyncio.create_task(
            target.run("insert into t values (1)", token=token, server=server)
        )
        await until(lambda: rows(target))
        token.cancel("Canceled")
        outcome = await running

    assert told(outcome) == ("Succeeded", None, False, False)
    assert await rows(target) == [1]


async def test_a_commit_that_is_stopped_is_undone(target):
    await target.execute(
        """create function slow() returns trigger language plpgsql as
             $$ begin perform pg_sleep(60); return null; end $$;
           create constraint trigger late after insert on t deferrable initially deferred
             for each row execute function slow()"""
    )
    outcome, _ = await stopped_while_running(target, "insert into t values (1)")

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert (outcome.cancel_method, outcome.phase) == ("protocol", "commit")
    assert await rows(target) == []


async def test_what_swallows_cancellations_is_ended(target, monkeypatch):
    monkeypatch.setattr(canceller, "METHOD_TIMEOUT", 0.5)
    outcome, pid = await stopped_while_running(target, "insert into t values (1);" + STUBBORN)

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.cancel_method == "pg_terminate_backend"
    assert await rows(target) == []
    await gone(target, pid)


async def test_a_stubborn_commit_that_is_ended_is_known_to_be_undone(target, monkeypatch):
    monkeypatch.setattr(canceller, "METHOD_TIMEOUT", 0.5)
    await target.execute(
        f"""create function slow() returns trigger language plpgsql as
             $f$ begin {STUBBORN.removeprefix("do $$").removesuffix("$$").strip().removeprefix("begin").removesuffix("end").strip()} return null; end $f$;
           create constraint trigger late after insert on t deferrable initially deferred
             for each row execute function slow()"""
    )
    outcome, _ = await stopped_while_running(target, "insert into t values (1)")

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.cancel_method == "pg_terminate_backend"
    assert await rows(target) == []


async def test_the_deadline_ends_what_is_stubborn(target, monkeypatch):
    monkeypatch.setattr(canceller, "METHOD_TIMEOUT", 0.5)
    outcome = await target.run(STUBBORN, within=0.5)

    assert told(outcome) == ("TimedOut", "TimedOut", True, False)
    assert outcome.cancel_method == "pg_terminate_backend"


async def test_a_target_that_is_silent_is_hung_up_on(target, monkeypatch):
    """Nothing gets through any more, not even a second connection."""
    monkeypatch.setattr(canceller, "METHOD_TIMEOUT", 0.2)
    token = CancelToken()
    async with proxy_to(target.targets.port) as proxy:
        server = msgspec.structs.replace(target.server, port=proxy.port)
        running = asyncio.create_task(
            target.run("insert into t values (1); select pg_sleep(60)", token=token, server=server)
        )
        await until(sleeping(target))
        proxy.hold()
        token.cancel("Canceled")
        outcome = await running

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.cancel_method == "pg_terminate_backend"
    assert await rows(target) == []


@pytest.mark.parametrize("within", [60.0, 1.0])
async def test_what_commits_by_itself_behind_a_silent_line_is_unknown(target, monkeypatch, within):
    monkeypatch.setattr(canceller, "METHOD_TIMEOUT", 0.2)
    token = CancelToken()
    async with proxy_to(target.targets.port) as proxy, target.connection() as other:
        await other.execute("begin; lock table t")
        server = msgspec.structs.replace(target.server, port=proxy.port)
        options = {"transaction": "none", "settings": {"lockTimeoutSeconds": 0}}
        running = asyncio.create_task(
            target.run(
                "insert into t values (1)", token=token, server=server, within=within, **options
            )
        )
        seen = "select pid from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'"
        await until(lambda: target.value(seen, target.owner.name))
        proxy.hold()
        if within > 1:
            token.cancel("Canceled")
        outcome = await running

    assert told(outcome) == ("Failed", "OutcomeUnknown", False, False)
    wish = "It was cancelled." if within > 1 else "It did not end within the step's time."
    assert outcome.message == f"{wish} The connection to the target was lost."


async def test_a_wish_between_statements_stops_the_next_one(target):
    outcome, _ = await stopped_while_running(
        target, "select pg_sleep(0.3); " + "select 1;" * 3000, "Canceled"
    )

    assert outcome.lifecycle == "Canceled"
    assert (outcome.statement_no or 0) < 3001


@pytest.mark.parametrize(
    ("script", "options", "expected"),
    [
        ("select pg_sleep(60); select 1", {}, ("Canceled", "HostStopped", False, True)),
        ("select 1; select pg_sleep(60)", {}, ("Failed", "OutcomeUnknown", False, False)),
        (
            "select 1; select pg_sleep(60)",
            {"idempotent": True},
            ("Canceled", "HostStopped", False, True),
        ),
    ],
)
async def test_a_stopped_host_repeats_only_what_may_be_repeated(target, script, options, expected):
    outcome, _ = await stopped_while_running(
        target, script, "HostStopped", transaction="none", **options
    )

    assert told(outcome) == expected


async def test_a_host_that_stops_before_the_first_statement_has_done_nothing(target):
    token = CancelToken()

    async def intend(_):
        token.cancel("HostStopped")
        return True

    outcome = await target.run("vacuum t", token=token, intend=intend)

    assert told(outcome) == ("Canceled", "HostStopped", False, True)


async def test_an_autocommitting_script_is_cancelled_where_it_is(target):
    outcome, _ = await stopped_while_running(
        target,
        "insert into t values (1); select pg_sleep(60); insert into t values (2)",
        transaction="none",
    )

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert outcome.statement_no == 1
    assert outcome.last_message == "It was cancelled. Statement 1 stays committed."
    assert await rows(target) == [1]


async def test_a_cancelled_index_is_named(target):
    token = CancelToken()
    async with target.connection() as other:
        await other.execute("begin; insert into t values (9)")
        running = asyncio.create_task(
            target.run("create index concurrently late on t (v)", token=token)
        )
        seen = "select pid from pg_stat_activity where usename = $1 and wait_event_type = 'Lock'"
        await until(lambda: target.value(seen, target.owner.name))
        token.cancel("Canceled")
        outcome = await running

    assert told(outcome) == ("Canceled", "Canceled", False, False)
    assert "public.late" in outcome.message


async def test_an_ordinary_error_stays_one_though_a_wish_came(target):
    token = CancelToken()
    running = asyncio.create_task(
        target.run(
            "do $$ begin begin perform pg_sleep(60); exception when query_canceled then perform 1/0; end; end $$",
            token=token,
        )
    )
    await until(sleeping(target))
    token.cancel("Canceled")
    outcome = await running

    assert (outcome.lifecycle, outcome.sqlstate) == ("Failed", "22012")
