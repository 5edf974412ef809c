"""Short tasks of one place follow each other: known to the host in time, begun one after the other or together."""

import json
import secrets
from collections import Counter
from uuid import UUID, uuid4

import asyncpg
import pytest

from engine.attempt import read_batch
from tests.support.fleet import BATCH_READS, Fleet, start_fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

ALONE = "lock table public.gate in access exclusive mode nowait; select 1"
SLOW = "select pg_sleep(case when '$(target_schema_name)' = 't05' then 4 else 0 end)"
SCHEMAS = """
do $$ begin
    for number in 1..{} loop
        execute format('create schema t%s', lpad(number::text, 2, '0'));
    end loop;
end $$
"""
READ = "select count(*) from pg_catalog.pg_class"
READ_ONLY = {"settings": {"access": "readOnly"}}
MANY = 40
# In the middle: neither among the first, which go alone, nor among the last.
SLEEPER = "select pg_sleep(case when '$(target_schema_name)' = 't20' then {} else 0 end)"
TARGET = """
select d.target_id, x.ordinal
  from jobs_internal.target_execution x
  join jobs_internal.snapshot_target d on (d.snapshot_id, d.ordinal) = (x.snapshot_id, x.ordinal)
 where x.job_execution_id = $1 and d.schema_name = $2
"""
ASLEEP = (
    "select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
)

END_ALL = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""


async def with_schemas(made: Fleet, many: int) -> None:
    await made.query(0, SCHEMAS.format(many))
    await made.call("sp_add_target_group", target_group_name="schemas")
    await made.call(
        "sp_add_target_group_member", target_group_name="schemas", target_type="SqlSchema",
        server_name="fleet", database_name=made.databases[0], schema_pattern="t%",
    )  # fmt: skip


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, databases=1, account=account) as made:
        await made.query(0, "create table gate ()")
        await with_schemas(made, 24)
        yield made


@pytest.fixture
async def narrow_fleet(settings, db, account, targets, tmp_path):
    """Room for two sessions, so that most of the tasks follow others."""
    few = {"databases": 1, "max_connections": 2}
    async with start_fleet(settings, db, targets, tmp_path, account=account, **few) as made:
        await with_schemas(made, MANY)
        await made.run(READ, group="schemas")  # so that nobody has to connect first
        yield made


def together(tasks: list[asyncpg.Record]) -> Counter[tuple[int, object]]:
    """How many began at one moment in one session."""
    return Counter((task["backend_pid"], task["start_time"]) for task in tasks)


async def riding(fleet: Fleet, script: str) -> tuple[UUID, asyncpg.Record]:
    """A run, and the target that sleeps in it while others wait for their answers in the same session."""
    name = f"slow {uuid4()}"
    await fleet.job(name, script, group="schemas", options=READ_ONLY)
    run = await fleet.start(name)

    async def one_of_several() -> bool:
        pids = [row["pid"] for row in await fleet.query(0, ASLEEP)]
        live = [task for task in await fleet.tasks(run) if task["lifecycle"] == "InProgress"]
        waiting = len([task for task in live if task["backend_pid"] in pids])
        return waiting > 1 if BATCH_READS else waiting == 1

    await until(one_of_several)
    return run, await fleet.root.fetchrow(TARGET, run, "t20")


async def test_one_begins_when_the_one_before_is_over_and_is_with_the_host_already(fleet: Fleet):
    run = await fleet.run(ALONE, group="schemas", options={"slotsPerDatabase": 1})

    tasks = sorted(await fleet.tasks(run), key=lambda task: task["start_time"])
    assert await fleet.lifecycles(run) == {"Succeeded": 24}
    assert {(task["attempt"], task["sqlstate"]) for task in tasks} == {(1, None)}
    pairs = zip(tasks, tasks[1:], strict=False)
    assert any(then["create_time"] < task["end_time"] for task, then in pairs)


async def test_who_follows_a_slow_one_does_not_wait_for_it(fleet: Fleet):
    run = await fleet.run(SLOW, group="schemas", options={"slotsPerDatabase": 2})

    by_end = sorted(await fleet.targets_of(run), key=lambda target: target["end_time"])
    assert await fleet.lifecycles(run) == {"Succeeded": 24}
    assert {target["attempts"] for target in by_end} == {1}
    assert by_end[-1]["ordinal"] == 5


@pytest.mark.parametrize("options", [{}, READ_ONLY])
async def test_short_ones_that_only_read_go_to_their_database_together(
    narrow_fleet: Fleet, options
):
    run = await narrow_fleet.run(READ, group="schemas", options=options)

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    assert [task["attempt"] for task in tasks] == [1] * MANY
    most = max(together(tasks).values())
    assert 2 < most <= read_batch.MAX_TASKS if BATCH_READS else most == 1
    assert len({task["result_hash"] for task in tasks}) == 1
    assert None not in {task["result_hash"] for task in tasks}


async def test_where_one_at_a_time_is_wanted_no_more_than_two_go_together(narrow_fleet: Fleet):
    run = await narrow_fleet.run(READ, group="schemas", options={"slotsPerDatabase": 1})

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    assert max(together(tasks).values()) == (2 if BATCH_READS else 1)
    assert {task["attempt"] for task in tasks} == {1}


async def test_only_those_with_one_login_go_together(narrow_fleet: Fleet):
    other = f"other_{secrets.token_hex(4)}"
    await narrow_fleet.query(0, f"create role {other} login password 'geheim'")
    (narrow_fleet.folder / "other").write_text("geheim")
    await narrow_fleet.root.execute(
        "insert into jobs_internal.credential (name, username, secret, created_by, modified_by)"
        " values ('other', $1, $2, 'test', 'test')",
        other,
        f"file:{narrow_fleet.folder / 'other'}",
    )
    await narrow_fleet.call("sp_add_target_group", target_group_name="mixed")
    for digit in range(10):
        await narrow_fleet.call(
            "sp_add_target_group_member", target_group_name="mixed", target_type="SqlSchema",
            server_name="fleet", database_name=narrow_fleet.databases[0], schema_pattern=f"t%{digit}",
            credential_name="fleet" if digit < 5 else "other", refresh_credential_name="fleet",
        )  # fmt: skip

    run = await narrow_fleet.run("select '$(target_schema_name)', current_user", group="mixed")
    await narrow_fleet.query(0, f"drop role {other}")

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    assert (max(together(tasks).values()) > 1) is BATCH_READS
    rows = [json.loads(task["results"])[0]["rows"][0] for task in tasks]
    first = narrow_fleet.targets.administrator.name
    assert {(int(name[-1]) < 5, user) for name, user in rows} == {(True, first), (False, other)}


async def test_what_writes_goes_alone(narrow_fleet: Fleet):
    run = await narrow_fleet.run("create table written ()", group="schemas")

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    assert set(together(tasks).values()) == {1}


async def test_strings_are_as_the_standard_has_them_whatever_a_database_sets(narrow_fleet: Fleet):
    database = narrow_fleet.databases[0]
    await narrow_fleet.query(
        0, f'alter database "{database}" set standard_conforming_strings = off'
    )
    await narrow_fleet.query(0, END_ALL)
    await until(lambda: nobody(narrow_fleet))

    run = await narrow_fleet.run(r"select '\$(target_schema_name)'", group="schemas")

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    rows = [json.loads(task["results"])[0]["rows"] for task in tasks]
    assert rows == [[[rf"\t{number:02}"]] for number in range(1, MANY + 1)]


async def nobody(fleet: Fleet) -> bool:
    return await fleet.sessions() == 0


async def test_what_writes_though_it_seems_to_read_has_written_once_in_each(narrow_fleet: Fleet):
    await narrow_fleet.query(0, "create table written (name text)")
    await narrow_fleet.query(
        0,
        """create function write() returns int language plpgsql as
           $$ begin insert into public.written values (current_schema); return 1; end $$""",
    )
    await narrow_fleet.query(0, "create view v as select public.write() as n")

    run = await narrow_fleet.run("select n from public.v", group="schemas", retry_attempts=0)

    tasks = await narrow_fleet.tasks(run)
    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    retried = {(1, "Canceled", "BrokenOff"), (2, "Succeeded", None)} if BATCH_READS else set()
    ways = {(task["attempt"], task["lifecycle"], task["end_reason"]) for task in tasks}
    assert ways == {(1, "Succeeded", None)} | retried
    assert {target["end_reason"] for target in await narrow_fleet.targets_of(run)} == {None}
    written = Counter(
        row["name"] for row in await narrow_fleet.query(0, "select name from written")
    )
    assert (len(written), set(written.values())) == (MANY, {1})


async def test_a_slow_one_among_them_is_made_again_and_counts_once(
    narrow_fleet: Fleet, monkeypatch
):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 0.3)

    run = await narrow_fleet.run(
        SLEEPER.format(1), group="schemas", options=READ_ONLY, retry_attempts=0
    )

    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY}
    _, ordinal = await narrow_fleet.root.fetchrow(TARGET, run, "t20")
    tasks = [task for task in await narrow_fleet.tasks(run) if task["ordinal"] == ordinal]
    interrupted = [("Canceled", "BrokenOff")] if BATCH_READS else []
    ends = [(task["lifecycle"], task["end_reason"]) for task in tasks]
    assert ends == [*interrupted, ("Succeeded", None)]
    others = [
        target for target in await narrow_fleet.targets_of(run) if target["ordinal"] != ordinal
    ]
    assert {target["attempts"] for target in others} == {1}


async def test_one_that_is_stopped_while_others_wait_behind_it_ends_alone(
    narrow_fleet: Fleet, monkeypatch
):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 60.0)
    run, (target, ordinal) = await riding(narrow_fleet, SLEEPER.format(60))

    await narrow_fleet.root.execute("select jobs.sp_stop_target($1, 'step1', $2)", run, target)
    await narrow_fleet.ended(run)

    assert await narrow_fleet.lifecycles(run) == {"Succeeded": MANY - 1, "Canceled": 1}
    canceled = [
        each for each in await narrow_fleet.targets_of(run) if each["lifecycle"] == "Canceled"
    ]
    assert [(each["ordinal"], each["end_reason"]) for each in canceled] == [(ordinal, "Canceled")]
    assert await narrow_fleet.query(0, ASLEEP) == []


async def test_a_run_that_is_stopped_while_many_go_together_ends(narrow_fleet: Fleet, monkeypatch):
    monkeypatch.setattr(read_batch, "BATCH_TIMEOUT", 60.0)
    run, (_, ordinal) = await riding(narrow_fleet, SLEEPER.format(60))

    await narrow_fleet.root.execute("select jobs.sp_stop_job($1)", run)
    ended = await narrow_fleet.ended(run)

    targets = await narrow_fleet.targets_of(run)
    assert ended == "Canceled"
    assert {target["lifecycle"] for target in targets} <= {"Succeeded", "Canceled"}
    assert [each["lifecycle"] for each in targets if each["ordinal"] == ordinal] == ["Canceled"]
    assert await narrow_fleet.query(0, ASLEEP) == []
