"""Tasks that go to a real target in one breath, and something comes in between: nobody is told what is not so."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from engine.attempt import read_batch
from engine.pgwire import results
from engine.attempt.session_setup import KEY_CLASS, lock_key
from engine.attempt.cancel_token import CancelToken
from engine.model.step import Step
from tests.support.attempts import (
    TargetDatabase,
    a_target_database,
    a_step,
    record_messages,
    renewed,
    until,
)
from tests.support.read_batches import AGAIN, SCHEMAS, SUCCEEDED, some_tasks, told

pytestmark = [pytest.mark.deep, pytest.mark.targets]

READ_ONLY = {"settings": {"access": "readOnly"}}
CANCELED = ("Canceled", "Canceled", False, False)
TIMED_OUT = ("TimedOut", "TimedOut", True, False)
LONG = 60.0  # seconds; whoever waits for it to be over fails


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        made_by = f"set role {made.owner.name};"
        for number, schema in enumerate(SCHEMAS, 1):
            made_by += f"""
                create schema {schema}; create table {schema}.t (id int);
                insert into {schema}.t select generate_series(1, {number});
            """
        await made.execute(made_by)
        yield made


def sleeps(*schemas: str) -> Step:
    """For a minute in these; elsewhere it is over at once."""
    names = ", ".join(f"'{name}'" for name in schemas)
    seconds = f"case when '$(target_schema_name)' in ({names}) then {LONG} else 0 end"
    return a_step(f"select pg_sleep({seconds})", **READ_ONLY)


def asleep(target: TargetDatabase) -> Callable[[], Awaitable[int | None]]:
    async def check():
        return await target.value(
            "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1",
            target.owner.name,
        )

    return check


def nobody(target: TargetDatabase) -> Callable[[], Awaitable[bool]]:
    async def check():
        return await target.ours() == 0

    return check


async def test_one_that_takes_long_is_made_again_and_whoever_was_answered_is_not(
    target, monkeypatch
):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 0.3)
    session = await target.lend()
    pid = session.backend_pid

    outcomes = await target.run_batch(sleeps("s2"), some_tasks(target), session=session)

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, SUCCEEDED, SUCCEEDED]
    assert (await target.lend()).backend_pid != pid, "the signal may come late"


async def test_however_many_take_long_they_do_not_keep_their_database(target, monkeypatch):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 0.2)
    monkeypatch.setattr(read_batch, "CANCEL_TIMEOUT", 0.3)

    outcomes = await target.run_batch(sleeps("s1", "s2", "s3", "s4"), some_tasks(target))

    assert [told(outcome) for outcome in outcomes] == [AGAIN] * 4
    await until(nobody(target))


async def test_one_that_is_cancelled_while_it_runs_ends_and_the_others_do_not(target):
    tokens = [CancelToken() for _ in SCHEMAS]
    riding = asyncio.create_task(target.run_batch(sleeps("s2"), some_tasks(target), tokens=tokens))
    await until(asleep(target))

    tokens[1].cancel()
    outcomes = await riding

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, CANCELED, SUCCEEDED, SUCCEEDED]
    assert outcomes[1].cancel_method == "protocol"


async def test_who_runs_while_another_behind_it_is_cancelled_is_made_again(target):
    tokens = [CancelToken() for _ in SCHEMAS]
    riding = asyncio.create_task(target.run_batch(sleeps("s2"), some_tasks(target), tokens=tokens))
    await until(asleep(target))

    tokens[3].cancel()
    outcomes = await riding

    assert [told(outcome) for outcome in outcomes[:3]] == [SUCCEEDED, AGAIN, SUCCEEDED]
    assert told(outcomes[3]) in (SUCCEEDED, CANCELED)


async def test_one_that_is_cancelled_while_it_waits_is_stopped_when_it_runs(target):
    tokens = [CancelToken() for _ in SCHEMAS]
    riding = asyncio.create_task(
        target.run_batch(sleeps("s2", "s4"), some_tasks(target), tokens=tokens)
    )
    await until(asleep(target))

    tokens[3].cancel()
    outcomes = await riding

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, SUCCEEDED, CANCELED]
    # Which method stops it is not certain: on PostgreSQL 12 the cancel request was once enough.
    assert outcomes[3].cancel_method in {"protocol", "pg_cancel_backend"}


async def test_a_wish_during_the_start_sends_nothing(target):
    tokens = [CancelToken() for _ in SCHEMAS]
    session = await target.lend()
    said = record_messages(session)

    async def start():
        tokens[1].cancel()
        return set()

    outcomes = await target.run_batch(
        "select 1", some_tasks(target), tokens=tokens, session=session, start=start
    )

    assert [told(outcome) for outcome in outcomes] == [AGAIN, CANCELED, AGAIN, AGAIN]
    assert outcomes[1].cancel_method is None
    assert [text for text in said if "begin" in text] == []


async def test_what_a_host_that_stops_has_under_way_is_made_again(target):
    tokens = [CancelToken() for _ in SCHEMAS]
    riding = asyncio.create_task(target.run_batch(sleeps("s2"), some_tasks(target), tokens=tokens))
    await until(asleep(target))

    for token in tokens:
        token.cancel("HostStopped")
    outcomes = await riding

    stopped = ("Canceled", "HostStopped", False, True)
    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, stopped, SUCCEEDED, SUCCEEDED]


async def test_one_whose_time_is_over_timed_out_and_the_others_have_theirs(target):
    outcomes = await target.run_batch(
        sleeps("s2"), some_tasks(target), within=[60.0, 0.4, 60.0, 60.0]
    )

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, TIMED_OUT, SUCCEEDED, SUCCEEDED]


async def test_who_keeps_another_from_its_time_has_its_own_still(target, monkeypatch):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", LONG)

    outcomes = await target.run_batch(
        sleeps("s2", "s3"), some_tasks(target), within=[60.0, 60.0, 0.4, 60.0]
    )

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, TIMED_OUT, SUCCEEDED]


async def test_of_those_on_a_lost_connection_the_one_that_ran_has_lost_it(target):
    session = await target.lend()
    riding = asyncio.create_task(
        target.run_batch(sleeps("s2"), some_tasks(target), session=session)
    )
    pid = await until(asleep(target))

    await target.value("select pg_terminate_backend($1)", pid)
    outcomes = await riding

    lost = ("Failed", "ConnectionLost", True, False)
    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, lost, AGAIN, AGAIN]
    assert outcomes[1].sqlstate == "57P01"
    assert [outcome.sqlstate for outcome in outcomes[2:]] == [None, None]


async def test_what_one_said_before_the_connection_was_lost_is_not_told_of_others(target):
    await target.execute(
        f"""set role {target.owner.name};
            create function public.nap() returns text language plpgsql as
              $$ begin raise notice 'in %', current_schema; perform pg_sleep({LONG}); return ''; end $$"""
    )
    riding = asyncio.create_task(
        target.run_batch("select public.nap()", some_tasks(target, 3), **READ_ONLY)
    )
    pid = await until(asleep(target))

    await target.value("select pg_terminate_backend($1)", pid)
    outcomes = await riding

    assert [[note["message"] for note in outcome.notices] for outcome in outcomes] == [
        ["in s1"], [], [],
    ]  # fmt: skip
    assert [outcome.bytes for outcome in outcomes[1:]] == [0, 0]


async def test_one_that_waits_for_a_lock_is_made_again_and_tells_then_who_has_it(target):
    step = a_step("select count(*) from t", settings={"lockTimeoutSeconds": 0.3})
    tasks = some_tasks(target)
    async with target.connection() as other:
        await other.execute("begin; lock table s2.t")
        outcomes = await target.run_batch(step, tasks)
        alone = await target.run(step, renewed(tasks[1]))

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, SUCCEEDED, SUCCEEDED]
    assert told(alone) == ("Failed", "LockTimeout", True, False)
    assert len(alone.blockers) == 1


async def test_one_whose_earlier_attempt_still_runs_is_made_again(target):
    tasks = some_tasks(target)
    async with target.connection() as other:
        await other.execute(f"select pg_advisory_lock({KEY_CLASS}, {lock_key(tasks[1])})")
        outcomes = await target.run_batch("select 1", tasks)
        alone = await target.run("select 1", renewed(tasks[1]))

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, SUCCEEDED, SUCCEEDED]
    assert told(alone) == ("Failed", "LockTimeout", True, False)


async def test_where_nothing_can_be_written_all_are_made_again_and_tell_it_alone(target):
    """Behind a pooler, where the setting is in force when the transaction begins, as it is on a standby."""
    await target.execute(f"alter database {target.database} set default_transaction_read_only = on")
    tasks = some_tasks(target)
    target.server = replace(target.server, pooling="session")

    outcomes = await target.run_batch("select 1", tasks)
    alone = await target.run("select 1", renewed(tasks[1]))
    reading = await target.run_batch("select 1", tasks, **READ_ONLY)

    assert [told(outcome) for outcome in outcomes] == [AGAIN] * 4
    assert told(alone) == ("Failed", "TargetReadOnly", True, False)
    assert [told(outcome) for outcome in reading] == [SUCCEEDED] * 4


async def test_one_that_returns_a_flood_fails_and_those_behind_it_are_made_again(
    target, monkeypatch
):
    monkeypatch.setattr(results, "MAX_ROWS", 1)
    session = await target.lend()
    pid = session.backend_pid

    outcomes = await target.run_batch("select id from t", some_tasks(target), session=session)

    flood = ("Failed", "ResultTooLarge", False, False)
    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, flood, AGAIN, AGAIN]
    assert (await target.lend()).backend_pid != pid


async def test_breaking_it_off_hangs_up(target):
    session = await target.lend()
    riding = asyncio.create_task(
        target.run_batch(sleeps("s2"), some_tasks(target), session=session)
    )
    await until(asleep(target))

    riding.cancel()
    await asyncio.wait({riding})

    assert riding.cancelled()
    assert session.lost
    await until(nobody(target), limit=10)


async def test_breaking_it_off_before_the_start_was_answered_sends_nothing(target):
    session = await target.lend()
    said = record_messages(session)
    asked = asyncio.Event()

    async def start():
        asked.set()
        await asyncio.Event().wait()

    riding = asyncio.create_task(
        target.run_batch("select 1", some_tasks(target), session=session, start=start)
    )
    await asked.wait()
    riding.cancel()
    await asyncio.wait({riding})

    assert riding.cancelled()
    assert [text for text in said if "begin" in text] == []


async def test_a_step_that_was_broken_off_succeeds_alone(target, monkeypatch):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 0.1)
    step = a_step("select pg_sleep(0.3)", **READ_ONLY)
    tasks = some_tasks(target, 2)

    together = await target.run_batch(step, tasks)
    alone = [await target.run(step, renewed(task)) for task in tasks]

    assert AGAIN in [told(outcome) for outcome in together]
    assert [told(outcome) for outcome in alone] == [SUCCEEDED] * 2
    assert not any(read_batch.may_batch(renewed(task)) for task in tasks)
