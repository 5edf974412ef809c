"""A guarded script is applied once, however often it is tried."""

import asyncio
import contextlib
from uuid import UUID

import msgspec
import pytest

from tests.support.attempts import a_target_database, a_cutting_proxy, a_step, renewed, until
from tests.support.postgres import Role

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(f"set role {made.owner.name}; create table t (id serial, v text)")
        yield made


STEP = a_step("insert into t (v) values ('x')", guard=True)


async def count(target):
    return await target.value("select count(*) from t")


async def test_a_second_attempt_finds_the_first_ones_row(target):
    task = target.task()
    first = await target.run(STEP, task)
    second = await target.run(STEP, renewed(task))

    assert (first.lifecycle, first.reason) == ("Succeeded", None)
    assert [each["tag"] for each in first.results] == ["INSERT 0 1"]
    assert (second.lifecycle, second.reason) == ("Succeeded", "AlreadyApplied")
    assert (second.results, second.statement_no) == ([], None)
    assert await count(target) == 1
    [row] = await target.fetch("select * from muster_guard.applied")
    assert (row["job_execution_id"], row["target_id"]) == (task.job_execution_id, task.target_id)
    assert (row["step_id"], row["content_hash"].hex()) == (1, "ab" * 32)


async def test_another_run_target_step_or_text_is_another_matter(target):
    task = target.task()
    await target.run(STEP, task)
    for other in (
        target.task(job_execution_id=task.job_execution_id),
        target.task(target_id=task.target_id),
        renewed(task, step_id=2),
    ):
        assert (await target.run(STEP, other)).reason is None

    assert await count(target) == 4


async def test_a_guard_of_the_job_holds_for_every_later_run(target):
    step = a_step(STEP.script, guard="job")
    task = target.task()
    first = await target.run(step, task)
    rerun = target.task(job_id=task.job_id, step_id=2)

    later = await target.run(step, rerun)

    assert (first.lifecycle, first.reason) == ("Succeeded", None)
    assert (later.lifecycle, later.reason, later.results) == ("Succeeded", "AlreadyApplied", [])
    assert later.last_message == "It was applied before by this job; nothing was done."
    assert await count(target) == 1


async def test_another_job_step_script_or_schema_is_another_matter_to_a_guard_of_the_job(target):
    step = a_step(STEP.script, guard="job")
    task = target.task()
    await target.run(step, task)
    await target.execute(
        f"create schema s authorization {target.owner.name}; create table s.t (v text)"
    )
    await target.execute(f"alter table s.t owner to {target.owner.name}")
    others = [
        (step, target.task(job_id=UUID(int=7))),
        (msgspec.structs.replace(step, step_name="other"), target.task(job_id=task.job_id)),
        (a_step(STEP.script + ";", guard="job"), target.task(job_id=task.job_id)),
        (step, target.task(job_id=task.job_id, schema_name="s")),
    ]

    reasons = [(await target.run(each, other)).reason for each, other in others]

    assert reasons == [None] * 4
    assert (await count(target), await target.value("select count(*) from s.t")) == (4, 1)


@pytest.mark.parametrize("guard", [True, "job"])
async def test_the_row_is_written_after_the_script(target, guard):
    """So what ends the script's transaction by itself leaves no row that claims the rest."""
    seen = "(select count(*) from muster_guard.applied) + (select count(*) from muster_guard.applied_by_job)"
    await target.run(STEP)
    await target.execute("truncate muster_guard.applied")

    outcome = await target.run(f"insert into t (v) select {seen}", guard=guard)

    assert outcome.lifecycle == "Succeeded"
    assert await target.value("select v from t order by id desc limit 1") == "0"
    assert await target.value(f"select {seen}") == 1


async def test_of_two_runs_at_once_a_guard_of_the_job_undoes_the_second(target):
    step = a_step("insert into t (v) values ('x') returning id", guard="job")
    first = target.task()
    second = target.task(job_id=first.job_id)
    waits = "select 1 from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'"
    arrived, leave = asyncio.Event(), asyncio.Event()

    async def held(_: str) -> bool:
        arrived.set()
        await leave.wait()
        return True

    running = asyncio.create_task(target.run(step, first, intend=held))
    await arrived.wait()
    other = asyncio.create_task(target.run(step, second))
    await until(lambda: target.value(waits, target.database))
    leave.set()
    won, lost = await asyncio.gather(running, other)

    assert (won.reason, lost.lifecycle, lost.reason) == (None, "Succeeded", "AlreadyApplied")
    assert (lost.results, lost.rows, lost.statement_no) == ([], 0, None)
    assert await count(target) == 1


async def test_what_failed_is_not_applied(target):
    task = target.task()
    broken = await target.run("insert into t (v) values ('x'); select 1/0", task, guard=True)
    again = await target.run(STEP, renewed(task))

    assert broken.lifecycle == "Failed"
    assert (again.lifecycle, again.reason) == ("Succeeded", None)
    assert await count(target) == 1


async def test_a_rehearsal_leaves_no_row(target):
    task = target.task(overrides={"rollback": True})
    await target.run(STEP, task)
    outcome = await target.run(STEP, renewed(task, overrides={}))

    assert outcome.reason is None
    assert await count(target) == 1


async def test_a_lost_commit_is_made_good_by_the_next_attempt(target):
    task = target.task()
    async with a_cutting_proxy(target, after=True, recovers=False) as server:
        lost = await target.run(STEP, task, server=server, within=1)
    again = await target.run(STEP, renewed(task))

    assert (lost.reason, lost.retry) == ("OutcomeUnknown", True)
    assert (again.lifecycle, again.reason) == ("Succeeded", "AlreadyApplied")
    assert await count(target) == 1


async def test_many_make_the_table_at_once(target):
    outcomes = await asyncio.gather(*(target.run(STEP, target.task()) for _ in range(7)))

    assert [each.lifecycle for each in outcomes] == ["Succeeded"] * 7
    assert await count(target) == 7
    assert await target.value("select count(*) from muster_guard.applied") == 7


@contextlib.asynccontextmanager
async def a_guest(target):
    """Another login, which may write to `t`."""
    guest = Role(f"{target.database}_guest", "g")
    await target.execute(f"create role {guest.name} login password 'g'")
    await target.execute(f"grant insert on t to {guest.name}")
    await target.execute(f"grant usage on sequence t_id_seq to {guest.name}")
    try:
        yield guest
    finally:
        await target.sessions.close()
        await target.execute(f"drop owned by {guest.name}; drop role {guest.name}")


async def test_a_right_that_is_missing_is_named_as_the_statement_that_gives_it(target):
    async with a_guest(target) as guest:
        task = target.task()
        makes = await target.run(STEP, task, who=target.who(guest))
        assert (makes.lifecycle, makes.reason, makes.retry) == ("Failed", "StatementFailed", False)
        assert f'GRANT CREATE ON DATABASE "{target.database}" TO "{guest.name}";' in makes.message

        await target.run(STEP, target.task(), who=target.who(target.targets.root))
        writes = await target.run(STEP, renewed(task), who=target.who(guest))
        assert (writes.lifecycle, writes.retry) == ("Failed", False)
        told = writes.message.partition(": ")[2]
        assert told.startswith("GRANT USAGE ON SCHEMA muster_guard TO")

        await target.execute(told)
        granted = await target.run(STEP, renewed(task), who=target.who(guest))
        assert (granted.lifecycle, granted.reason) == ("Succeeded", None)


async def test_tables_of_another_login_are_not_trusted(target):
    await target.run(STEP)
    async with a_guest(target) as guest:
        await target.execute(f"grant usage on schema muster_guard to {guest.name}")
        await target.execute(f"grant all on all tables in schema muster_guard to {guest.name}")
        outcome = await target.run(STEP, who=target.who(guest))

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == (
        "Failed",
        "GuardNotTrusted",
        False,
    )
    assert f"the schema muster_guard belongs to {target.owner.name}" in outcome.message
    assert "DROP SCHEMA muster_guard CASCADE" in outcome.message
    assert await count(target) == 1


FOREIGN = {
    "a schema of another": "alter schema muster_guard owner to {other}",
    "a table of another": "alter table muster_guard.applied owner to {other}",
    "a view": "drop table muster_guard.applied; create view muster_guard.applied as select"
    " null::uuid as job_execution_id, 1 as step_id, null::uuid as target_id, null::bytea as content_hash,"
    " now() as applied_at; alter view muster_guard.applied owner to {login}",
    "a trigger": "create function public.no() returns trigger language plpgsql as"
    " $$ begin insert into public.hits values (1); return null; end $$;"
    " create trigger no before insert on muster_guard.applied for each row execute function public.no()",
    "a rule": "create rule no as on insert to muster_guard.applied do instead nothing",
    "row security": "alter table muster_guard.applied enable row level security",
    "another key": "alter table muster_guard.applied drop constraint applied_pkey",
    "another column": "alter table muster_guard.applied add x int not null default 1",
    "a nullable column": "alter table muster_guard.applied drop constraint applied_pkey,"
    " alter step_id drop not null",
    "a child": "create table public.child () inherits (muster_guard.applied)",
    "a table that a crash empties": "alter table muster_guard.applied set unlogged",
}


@pytest.mark.parametrize("how", FOREIGN)
@pytest.mark.parametrize("guard", [True, "job"])
async def test_a_table_that_is_not_as_muster_makes_it_is_not_trusted(target, how, guard):
    await target.run(STEP)
    other = f"{target.database}_tenant"
    await target.execute(f"create table public.hits (id int); create role {other}")
    try:
        await target.execute(FOREIGN[how].format(other=other, login=target.owner.name))
        outcome = await target.run(a_step(STEP.script, guard=guard))
    finally:
        await target.execute(f"drop owned by {other} cascade; drop role {other}")

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == (
        "Failed",
        "GuardNotTrusted",
        False,
    )
    assert await count(target) == 1
    assert await target.value("select count(*) from public.hits") == 0


async def test_a_schema_made_beforehand_by_the_tenant_is_not_trusted(target):
    """Even where the login is a member of the tenant's role, as it is to run scripts as the tenant."""
    tenant = f"{target.database}_tenant"
    await target.execute(
        f"create role {tenant}; grant {tenant} to {target.owner.name};"
        f" create schema muster_guard authorization {tenant}; grant all on schema muster_guard to public"
    )
    try:
        outcome = await target.run(STEP)
    finally:
        await target.execute(f"drop owned by {tenant} cascade; drop role {tenant}")

    assert (outcome.lifecycle, outcome.reason) == ("Failed", "GuardNotTrusted")
    assert await count(target) == 0
    assert (await target.run(STEP)).lifecycle == "Succeeded"


async def test_the_guard_belongs_to_the_login_and_the_script_to_the_role(target):
    role = f"{target.database}_tenant"
    await target.execute(f"create role {role}; grant {role} to {target.owner.name}")
    await target.execute(f"grant insert on t to {role}; grant usage on sequence t_id_seq to {role}")
    try:
        task = target.task()
        step = a_step(STEP.script, guard=True, settings={"role": role})
        first, second = await target.run(step, task), await target.run(step, renewed(task))
    finally:
        await target.execute(f"drop owned by {role}; drop role {role}")

    assert (first.lifecycle, second.reason) == ("Succeeded", "AlreadyApplied")
    assert await count(target) == 1
