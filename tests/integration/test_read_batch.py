"""Several tasks that only read, said to a real target in one breath: each is as it would be alone."""

import pytest
from msgspec import structs

from engine.pgwire import connection
from engine.attempt.outcome import Outcome
from tests.support.attempts import a_target_database, a_step, record_messages, renewed
from tests.support.read_batches import AGAIN, SCHEMAS, SUCCEEDED, some_tasks, told

pytestmark = pytest.mark.targets

READ_ONLY = {"settings": {"access": "readOnly"}}
# How long it took and how many bytes were read with it are not the task's own; nor is where it was when it ended.
NOT_COMPARED = {"timings", "bytes"}
LOUD = """
create function public.shout() returns text language plpgsql stable as
  $$ begin raise notice 'in %', current_schema using hint = 'hear'; return 'x'; end $$;
create view public.loud as select public.shout();
"""


@pytest.fixture
async def target(targets, tmp_path):
    """`t` is in every schema; `extra` is not in s2."""
    async with a_target_database(targets, tmp_path) as made:
        made_by = f"set role {made.owner.name}; create type public.mood as enum ('good');"
        for number, schema in enumerate(SCHEMAS, 1):
            made_by += f"""
                create schema {schema};
                create table {schema}.t (id int, v text);
                insert into {schema}.t select n, '{schema} ' || n from generate_series(1, {number}) n;
            """
            if schema != "s2":
                made_by += f"create table {schema}.extra (id int);"
        made_by += LOUD
        await made.execute(made_by)
        yield made


def essence(outcome: Outcome | None):
    assert outcome is not None
    return {
        name: value for name, value in structs.asdict(outcome).items() if name not in NOT_COMPARED
    }


def first_rows(outcomes):
    return [outcome.results[0]["rows"][0] for outcome in outcomes]


async def test_each_finds_its_own_settings_around_it_in_one_session(target):
    names = (
        "search_path",
        "application_name",
        "muster.target_schema_name",
        "muster.target_label.tier",
    )
    settings = ", ".join(f"current_setting('{name}')" for name in names)
    tasks = [
        structs.replace(task, labels={"tier": f"of {task.schema_name}"})
        for task in some_tasks(target)
    ]

    outcomes = await target.run_batch(
        f"select {settings}, current_schema, id from t", tasks, **READ_ONLY
    )

    for task, found in zip(tasks, first_rows(outcomes), strict=True):
        own, name = task.schema_name, f"muster {task.invocation_id.hex}"
        assert found == [f"{own}, pg_temp", name, own, f"of {own}", own, 1]
    assert [outcome.rows for outcome in outcomes] == [1, 2, 3, 4]


@pytest.mark.parametrize("options", [{}, READ_ONLY])
@pytest.mark.parametrize(
    "script",
    [
        "select * from t order by id",
        "select count(*), '$(target_schema_name)' as name, $(attempt) as number from t;",
        "select id, 'good'::public.mood as mood, null as nothing from t -- all of them",
        "select from t",
        "select * from public.loud",
        "select * from generate_series(1, 1200)",
        "select * from extra",
        "/* ä */ select '$(target_schema_name)' as a, missing from t",
        "select 1 / (id - 2) from t order by id",
        "select lower(id) from t",
        "select v::int from t",
        "select cast(null as nowhere) from t",
    ],
)
async def test_what_is_told_of_each_is_what_would_be_told_of_it_alone(target, script, options):
    step = a_step(script, **options)
    tasks = some_tasks(target)
    assert step.batchable

    together = await target.run_batch(step, tasks)
    alone = [await target.run(step, task) for task in tasks]

    assert [essence(outcome) for outcome in together] == [essence(outcome) for outcome in alone]
    assert "BrokenOff" not in {outcome.reason for outcome in together}
    assert all(outcome.bytes > 0 for outcome in together)


async def test_one_that_fails_fails_alone(target):
    script = "select count(*) from extra"
    tasks = some_tasks(target)

    outcomes = await target.run_batch(script, tasks)

    assert [told(outcome) for outcome in outcomes] == [
        SUCCEEDED, ("Failed", "StatementFailed", False, False), SUCCEEDED, SUCCEEDED,
    ]  # fmt: skip
    failed = outcomes[1]
    assert (failed.sqlstate, script[failed.position - 1 :]) == ("42P01", "extra")
    assert failed.fingerprint.startswith("42P01:")
    assert failed.message == 'relation "extra" does not exist'


async def test_what_may_be_tried_again_is_told_as_alone(target):
    step = a_step("select count(*) from extra", retryOn=["42P01"])

    outcomes = await target.run_batch(step, some_tasks(target))

    assert [outcome.retry for outcome in outcomes] == [False, True, False, False]


async def test_the_first_has_the_time_that_all_waited_for(target):
    first, *others = await target.run_batch("select 1", some_tasks(target))

    assert set(first.timings) == {"waiting", "connecting", "starting", "running"}
    assert [set(other.timings) for other in others] == [{"running"}] * 3
    assert all(time >= 0 for each in (first, *others) for time in each.timings.values())


async def test_some_want_fewer_rows_and_some_roll_back(target):
    one, two, three, four = some_tasks(target)
    three = structs.replace(three, overrides={"maxRows": 1})
    four = structs.replace(four, overrides={"rollback": True})

    outcomes = await target.run_batch("select id from t order by id", [one, two, three, four])

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED] * 4
    assert [outcome.results[0]["rows"] for outcome in outcomes[1:]] == [
        [[1], [2]], [[1]], [[1], [2], [3], [4]],
    ]  # fmt: skip
    assert outcomes[2].results[0]["truncated"]


async def test_what_one_leaves_in_the_session_is_not_there_for_the_next(target):
    script = """
        select current_setting('app.leak', true), set_config('app.leak', 'x', false),
               current_setting('work_mem'), set_config('work_mem', '77kB', false),
               (select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1),
               pg_advisory_lock(5)
    """

    outcomes = await target.run_batch(script, some_tasks(target), **READ_ONLY)

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED] * 4
    found = {(leak or "", memory, locks) for leak, _, memory, _, locks, _ in first_rows(outcomes)}
    assert found == {("", await target.value("show work_mem"), 0)}


async def test_whoever_comes_behind_a_session_that_stays_unclean_is_made_again(target, monkeypatch):
    monkeypatch.setattr(connection, "RESET", "select 1 from nowhere")
    session = await target.lend()
    pid = session.backend_pid

    outcomes = await target.run_batch(
        "select * from public.loud", some_tasks(target), session=session
    )

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, AGAIN, AGAIN]
    notices = [note["message"] for outcome in outcomes for note in outcome.notices]
    assert notices == [f"in {schema}" for schema in SCHEMAS]
    assert (await target.lend()).backend_pid != pid


WRITES = """
create table public.written (name text);
create function public.write() returns int language plpgsql as
  $$ begin insert into public.written values (current_schema); return 1; end $$;
create view {0}.v as select public.write() as n;
"""


async def test_one_that_writes_has_written_nothing_and_its_step_goes_alone_from_then_on(target):
    views = [f"create view {schema}.v as select 1 as n;" for schema in ("s1", "s3", "s4")]
    await target.execute(f"set role {target.owner.name};{WRITES.format('s2')}{''.join(views)}")
    step = a_step("select n from v")
    tasks = some_tasks(target)
    assert step.batchable

    outcomes = await target.run_batch(step, tasks)

    assert [told(outcome) for outcome in outcomes] == [SUCCEEDED, AGAIN, SUCCEEDED, SUCCEEDED]
    assert [task in target.unbatchable_steps for task in tasks] == [False, True, False, False]
    assert await target.fetch("select from public.written") == []
    again = await target.run(step, renewed(tasks[1]))
    assert told(again) == SUCCEEDED
    assert await target.fetch("select name from public.written") == [("s2",)]


async def test_one_that_would_swallow_a_refusal_to_write_is_not_taken_for_done(target):
    await target.execute(f"set role {target.owner.name};{WRITES.format('s1')}")
    await target.execute(
        """create or replace function public.write() returns int language plpgsql as
             $$ begin insert into public.written values (current_schema); return 1;
                exception when others then return 0; end $$"""
    )
    step, task = a_step("select n from v"), some_tasks(target)[0]

    outcomes = await target.run_batch(step, [task])

    assert [told(outcome) for outcome in outcomes] == [AGAIN]
    assert (await target.run(step, renewed(task))).results[0]["rows"] == [[1]]
    assert await target.fetch("select name from public.written") == [("s1",)]


async def test_one_that_divides_by_zero_itself_has_failed(target):
    step, tasks = a_step("select 1 / 0"), some_tasks(target)
    assert step.batchable

    outcomes = await target.run_batch(step, tasks)

    assert {(outcome.reason, outcome.sqlstate) for outcome in outcomes} == {
        ("StatementFailed", "22012")
    }
    assert not any(task in target.unbatchable_steps for task in tasks)


async def test_one_that_writes_though_its_step_must_not_fails(target):
    await target.execute(f"set role {target.owner.name};{WRITES.format('s2')}")
    views = [f"create view {schema}.v as select 1 as n;" for schema in ("s1", "s3", "s4")]
    await target.execute(f"set role {target.owner.name};{''.join(views)}")
    step, tasks = a_step("select n from v", **READ_ONLY), some_tasks(target)
    assert step.batchable

    outcomes = await target.run_batch(step, tasks)

    assert told(outcomes[1]) == ("Failed", "StatementFailed", False, False)
    assert outcomes[1].sqlstate == "25006"
    assert [told(outcome) for outcome in outcomes[2:]] == [SUCCEEDED] * 2
    assert not any(task in target.unbatchable_steps for task in tasks)


async def test_one_whose_start_is_refused_is_not_sent(target):
    tasks = some_tasks(target)
    session = await target.lend()
    said = record_messages(session)

    outcomes = await target.run_batch("select 1", tasks, session=session, refused=tasks[1:2])

    assert [outcome and outcome.lifecycle for outcome in outcomes] == [
        "Succeeded", None, "Succeeded", "Succeeded",
    ]  # fmt: skip
    whole = "".join(said)
    assert [task.invocation_id.hex in whole for task in tasks] == [True, False, True, True]


async def test_when_every_start_is_refused_nothing_is_said(target):
    tasks = some_tasks(target)
    session = await target.lend()
    said = record_messages(session)

    async def refused():
        assert not said, "nothing is sent before the start"
        return {task.invocation_id for task in tasks}

    assert await target.run_batch("select 1", tasks, session=session, start=refused) == [None] * 4
    assert [text for text in said if "begin" in text] == []


async def test_a_session_that_was_ridden_in_is_lent_again(target):
    session = await target.lend()
    pid = session.backend_pid

    await target.run_batch("select count(*) from extra", some_tasks(target), session=session)
    outcomes = await target.run_batch("select pg_backend_pid()", some_tasks(target), **READ_ONLY)

    assert first_rows(outcomes) == [[pid]] * 4


@pytest.mark.parametrize("value", ["a\0b", "\ud800", None])
async def test_what_can_not_be_said_of_one_sends_all_again_and_the_one_alone_tells_why(
    target, value
):
    tasks = some_tasks(target)
    for number in range(4):
        label = {"x": value if number == 2 else "fine"}
        tasks[number] = structs.replace(tasks[number], labels=label if label["x"] else {})
    step = a_step("select '$(target_label.x)'")

    outcomes = await target.run_batch(step, tasks)

    assert [told(outcome) for outcome in outcomes] == [AGAIN] * 4
    alone = [await target.run(step, renewed(task)) for task in tasks]
    assert [outcome.lifecycle for outcome in alone] == [
        "Succeeded",
        "Succeeded",
        "Failed",
        "Succeeded",
    ]


@pytest.mark.parametrize(
    "end", ["commit", "commit; begin", "rollback and chain", "commit; select 1/0"]
)
@pytest.mark.parametrize("options", [{}, READ_ONLY], ids=["plain", "read only"])
async def test_one_that_ends_its_transaction_in_a_batch_ends_as_unknown(target, end, options):
    """A batch is made from statements that the grammar told apart; the answers decide all the same."""
    script = f"select 'a' -- one literal to the server\n'b'; {end}"

    outcomes = await target.run_batch(script, some_tasks(target, 2), **options)

    assert [told(each) for each in outcomes] == [("Failed", "OutcomeUnknown", False, False)] * 2
