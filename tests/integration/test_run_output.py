"""A step with an output, from its start to its end: rows are written once, and no script is repeated for them."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from engine.attempt.row_spool import SpoolFolder
from engine.host.main import JobTaskHost
from muster.core import failpoints
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = [pytest.mark.newest, pytest.mark.targets]

PAGE = (Path(__file__).parents[2] / "docs/reference/output.md").read_text("utf-8")
SELECT = "select current_database()::text as name, n from generate_series(1, 3) n"
SCRIPT = f"insert into t values ($(attempt)); {SELECT}"
AWAY = """
insert into jobs_internal.server_directory (server_id, name, hosts, port, ssl_mode, job_credential, revision)
values ('/away', 'away', '{127.0.0.1}', 65001, 'disable', 'fleet', 1)
"""
RETURNED = """
update jobs_internal.server_directory set port = (select port from jobs_internal.server_directory where name = 'fleet')
 where name = 'away'
"""
SLEEPING = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and application_name ~ 'muster output'"
SLOW = """
create table "Rows" (internal_execution_id uuid, name text, n int);
create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$;
create trigger slow before insert on "Rows" for each row execute function slow();
"""


@pytest.fixture
async def fleet(settings, db, account, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path, account=account) as made:
        await made.root.execute("update jobs_internal.instance set same_error_limit = 0")
        for name in made.databases:
            await made.query(name, "create table t (n int)")
        yield made


def output(fleet: Fleet, **more):
    """The arguments of sp_add_jobstep for an output in the fleet's first database."""
    given = {
        "type": "SqlDatabase", "server_name": "fleet", "database_name": fleet.databases[0],
        "table_name": "Rows",
    }  # fmt: skip
    return {f"output_{name}": value for name, value in (given | more).items()}


async def written(fleet: Fleet, columns="name, n", table='"Rows"'):
    rows = await fleet.query(0, f"select {columns} from {table} order by 1, 2")
    return [tuple(row) for row in rows]


def expected(fleet: Fleet):
    return sorted((name, n) for name in fleet.databases for n in (1, 2, 3))


def spooled(fleet: Fleet):
    return list(fleet.folder.glob("*/*.rows"))


async def kept(fleet: Fleet, run) -> tuple[int, set[int]]:
    """How many rows the results of a run have, and of which attempts its command tags are."""
    read = "select jobs_internal.{}::text from jobs_internal.job_execution x where job_execution_id = $1"
    lists = "list_results(x, null, 1, null, 100)", "list_command_tags(x, null, null, 100)"
    results, tags = [
        json.loads(await fleet.root.fetchval(read.format(each), run)) for each in lists
    ]
    rows = sum(len(part["rows"]) for part in results["parts"])
    return rows, {each["attempt"] for each in tags["items"] if each["commandTags"]}


async def no_file(fleet: Fleet) -> bool:
    return spooled(fleet) == []


async def ends(fleet: Fleet, run):
    """Of the attempts on the first target."""
    return [task["end_reason"] for task in await fleet.tasks(run) if task["ordinal"] == 1]


async def test_the_rows_of_all_targets_are_in_the_table(fleet: Fleet):
    run = await fleet.run(SCRIPT, **output(fleet))

    assert await fleet.lifecycles(run) == {"Succeeded": 3}, await fleet.all(run)
    assert await written(fleet) == expected(fleet)
    targets = await fleet.targets_of(run)
    assert {each["phase"] for each in targets} == {"output"}
    assert targets[0]["last_message"] == (
        "Succeeded: 2 statements, 4 rows. 3 rows written to public.Rows."
    )
    ids = await fleet.query(0, 'select distinct internal_execution_id from "Rows"')
    assert {id for (id,) in ids} == {each["target_execution_id"] for each in targets}
    index = "select indexdef from pg_indexes where indexname = 'IX_Rows_Internal_Execution_ID'"
    assert len(await fleet.query(0, index)) == 1
    await until(lambda: no_file(fleet))


async def test_one_session_is_enough_for_the_target_and_its_output(fleet: Fleet):
    await fleet.root.execute("update jobs_internal.server_directory set max_connections = 1")

    run = await fleet.run(SELECT, **output(fleet), options={"output": {"includeTarget": True}})

    assert await fleet.lifecycles(run) == {"Succeeded": 3}, await fleet.all(run)
    columns = "target_server, target_database, target_schema, attempt"
    rows = await written(fleet, f"distinct {columns}")
    assert rows == [("fleet", name, None, 1) for name in sorted(fleet.databases)]


async def test_an_output_that_fails_is_retried_without_the_script(fleet: Fleet):
    await fleet.root.execute(AWAY)
    place = output(fleet, server_name="away")
    await fleet.job("away", SCRIPT, **place, options={"jitter": 0}, retry_attempts=10)
    run = await fleet.start("away")

    async def failed() -> bool:
        return {each["phase"] for each in await fleet.targets_of(run)} == {"output"}

    await until(failed)
    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]
    assert len(spooled(fleet)) == 3
    await fleet.root.execute(RETURNED)

    assert await fleet.ended(run) == "Succeeded"
    assert await fleet.everywhere("select array_agg(n) from t") == [[1], [1], [1]]
    assert await written(fleet) == expected(fleet)
    *before, last = await ends(fleet, run)
    assert (set(before), last) == ({"OutputFailed"}, None)
    assert await kept(fleet, run) == (9, {1}), "of the attempt that sent the script"


@pytest.mark.parametrize(
    ("made", "script", "message", "sqlstate"),
    [
        ('create table "Rows" (internal_execution_id uuid, name text)', SCRIPT,
         "The table public.Rows has no column n.", None),
        ('create table "Rows" (internal_execution_id uuid, name date, n int)', SCRIPT,
         "invalid input syntax for type date", "22007"),
        ("create schema closed", SCRIPT, "permission denied for schema closed", "42501"),
        ("", "insert into t values (1); select 1 as internal_execution_id",
         "The result has a column 'internal_execution_id'", None),
    ],
    ids=["column", "type", "right", "name"],
)  # fmt: skip
async def test_an_output_that_can_not_succeed_ends_the_target_and_keeps_its_work(
    fleet: Fleet, targets, made, script, message, sqlstate
):
    role = await weak_role(fleet, targets)
    if made:
        await fleet.execute(fleet.databases[0], made)
    schema = {"schema_name": "closed"} if "closed" in made else {}
    await fleet.execute(fleet.databases[0], f'grant connect on database "{fleet.databases[0]}" to {role}; '
                        + (f'grant all on "Rows" to {role}' if "Rows" in made else ""))  # fmt: skip

    run = await fleet.run(script, **output(fleet, credential_name="weak", **schema))

    for each in await fleet.targets_of(run):
        shown = (each["lifecycle"], each["end_reason"], each["phase"], each["attempts"])
        assert shown == ("Failed", "OutputFailed", "output", 1), each["last_message"]
        assert each["last_message"].startswith("The script succeeded; its output was not written: ")
        assert message in each["last_message"]
    assert {task["sqlstate"] for task in await fleet.tasks(run)} == {sqlstate}
    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]


async def weak_role(fleet: Fleet, targets) -> str:
    """With a credential of its own, and no right but to connect."""
    role = f"weak_{fleet.databases[0]}"
    password = fleet.folder / "weak"
    password.write_text("secret")
    await fleet.execute(
        "postgres", f"drop role if exists {role}; create role {role} login password 'secret'"
    )
    await fleet.call(
        "sp_add_credential", credential_name="weak", identity=role, secret=f"file:{password}"
    )
    return role


@pytest.mark.parametrize(
    "point",
    [
        "host.before_output",
        pytest.param("host.output_copied", marks=pytest.mark.deep),
        pytest.param("host.output_committed", marks=pytest.mark.deep),
        pytest.param("host.spooled", marks=pytest.mark.deep),
        pytest.param("host.before_record", marks=pytest.mark.deep),
    ],
)
async def test_a_host_that_is_lost_repeats_no_script_and_doubles_no_row(fleet: Fleet, point):
    await lose_host(fleet, point, options={})

    assert await written(fleet) == expected(fleet)
    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]


@pytest.mark.deep
@pytest.mark.parametrize("options", [{}, {"idempotent": True}], ids=str)
async def test_rows_that_are_lost_with_their_host_end_the_target_or_repeat_the_script(
    fleet: Fleet, options
):
    run = await lose_host(fleet, "host.before_output", options, lose_rows=True, end=None)

    targets = await fleet.targets_of(run)
    if options:
        assert await fleet.lifecycles(run) == {"Succeeded": 3}
        assert await written(fleet) == expected(fleet)
        assert await fleet.everywhere("select count(*) from t") == [2, 2, 2]
        return
    assert {each["end_reason"] for each in targets} == {"OutputFailed"}
    assert targets[0]["last_message"] == (
        "The script committed; its rows are lost: the host that had them on its disk is gone."
    )
    assert await fleet.everywhere("select count(*) from t") == [1, 1, 1]


async def lose_host(fleet: Fleet, point, options, *, lose_rows=False, end="Succeeded"):
    """A run whose host is lost at that place, once."""
    (lost,) = [one for one in fleet.alive if isinstance(one.living, JobTaskHost)]
    hits: list[asyncio.Task[None]] = []
    arrived: list[None] = []

    async def lose() -> None:
        arrived.append(None)
        if not hits and len(arrived) == (len(fleet.databases) if lose_rows else 1):
            hits.append(asyncio.create_task(fleet.kill(lost)))
            for path in spooled(fleet) if lose_rows else ():
                path.unlink()
            await fleet.host()
        await asyncio.Event().wait()

    async def reached() -> bool:
        return bool(hits)

    await fleet.job(
        "lost", SCRIPT, **output(fleet), options=options | {"jitter": 0}, retry_attempts=2
    )
    with failpoints.armed({point: lose}) as armed:
        run = await fleet.start("lost")
        await until(reached)
        armed.actions.clear()
        ended = await fleet.ended(run)
    assert end is None or ended == end, await fleet.all(run)
    return run


@pytest.mark.parametrize("how", ["cancel", pytest.param("time", marks=pytest.mark.deep)])
async def test_an_output_that_takes_long_is_stopped(fleet: Fleet, how):
    await fleet.execute(fleet.databases[0], SLOW)
    timeout = 2 if how == "time" else 60
    await fleet.job("slow", SCRIPT, **output(fleet), step_timeout_seconds=timeout)
    run = await fleet.start("slow")

    async def sleeping() -> bool:
        return (await fleet.query(0, SLEEPING))[0][0] == 3

    await until(sleeping)
    why = await fleet.root.fetchval("select jobs_internal.explain_target(r, 'step1', x.target_id::text)"
        " from jobs_internal.job_execution r, jobs_internal.snapshot_target x, jobs_internal.target_execution t"
        " where r.job_execution_id = $1 and t.job_execution_id = $1 and x.snapshot_id = t.snapshot_id and x.ordinal = 1 limit 1", run)  # fmt: skip
    assert "Attempt 1 writes the output; the script is not repeated." in why
    if how == "cancel":
        await fleet.root.execute("select jobs.sp_stop_job($1)", run)

    lifecycle = "Canceled" if how == "cancel" else "TimedOut"
    assert await fleet.ended(run) == lifecycle
    for each in await fleet.targets_of(run):
        assert (each["lifecycle"], each["end_reason"], each["phase"]) == (
            lifecycle,
            "OutputFailed",
            "output",
        )
        assert "The script succeeded; its output was not written: It" in each["last_message"]
    assert await written(fleet) == []


@pytest.mark.deep
async def test_more_rows_than_a_statement_may_return_go_through_the_disk(fleet: Fleet):
    script = "select n, repeat('x', 100) || E'\\\\\\t\\n' as text from generate_series(1, 120000) n"

    run = await fleet.run(script, **output(fleet))

    assert await fleet.lifecycles(run) == {"Succeeded": 3}, await fleet.all(run)
    rows = await fleet.query(0, 'select count(*), count(distinct n), min(text) = max(text), max(octet_length(text)) from "Rows"')  # fmt: skip
    assert tuple(rows[0]) == (360_000, 120_000, True, 103)
    await until(lambda: no_file(fleet))


async def test_a_verify_query_comes_before_the_output(fleet: Fleet):
    options = {
        "verify": {"sql": f"select from t where current_database() <> '{fleet.databases[1]}'"}
    }

    run = await fleet.run(SCRIPT, **output(fleet), options=options)

    reasons = [each["end_reason"] for each in await fleet.targets_of(run)]
    assert sorted(reasons, key=str) == [None, None, "VerifyFailed"]
    assert await written(fleet) == [row for row in expected(fleet) if row[0] != fleet.databases[1]]


@pytest.mark.deep
async def test_a_script_without_a_result_set_writes_nothing(fleet: Fleet):
    run = await fleet.run("insert into t values (1)", **output(fleet))

    assert await fleet.lifecycles(run) == {"Succeeded": 3}
    (first, *_) = await fleet.targets_of(run)
    assert first["last_message"].endswith(
        "It returned no result set: nothing was written to the output."
    )
    assert await fleet.query(0, "select from pg_tables where tablename = 'Rows'") == []


@pytest.mark.deep
async def test_statements_that_commit_one_by_one_have_an_output_too(fleet: Fleet):
    await fleet.execute(
        fleet.databases[0],
        'create schema dbo; create table dbo."Rows" (name text, extra int default 7)',
    )
    options = {"transaction": "none", "output": {"onMismatch": "addColumn"}}

    run = await fleet.run(SCRIPT, **output(fleet), options=options)

    assert await fleet.lifecycles(run) == {"Succeeded": 3}, await fleet.all(run)
    assert await written(fleet, table='dbo."Rows"') == expected(fleet)
    assert [*{extra for _, extra in await written(fleet, "name, extra", 'dbo."Rows"')}] == [7]


async def test_the_example_of_the_reference_works(fleet: Fleet):
    (example,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    await fleet.root.execute(AWAY.replace("away", "reports"))
    await fleet.root.execute(RETURNED.replace("away", "reports"))

    await fleet.root.execute(example.replace("'fleet'", f"'{fleet.databases[0]}'"))

    assert await fleet.ended(await fleet.start("sizes")) == "Succeeded"
    rows = await fleet.query(0, "select target_database = database, bytes > 0 from sizes")
    assert [tuple(row) for row in rows] == [(True, True)] * 3


@pytest.mark.deep
async def test_a_hundred_targets_write_into_one_new_table_at_once(fleet: Fleet):
    await fleet.execute(
        fleet.databases[1], "do $$ begin for n in 1..100 loop execute 'create schema s' || n; end loop; end $$"
    )  # fmt: skip
    await fleet.call("sp_add_target_group", target_group_name="many")
    await fleet.call(
        "sp_add_target_group_member", target_group_name="many", target_type="SqlSchema",
        server_name="fleet", database_name=fleet.databases[1], schema_pattern="s%",
    )  # fmt: skip
    options = {"output": {"includeTarget": True}}

    run = await fleet.run(
        "select n from generate_series(1, 10) n", group="many", **output(fleet), options=options
    )

    assert await fleet.lifecycles(run) == {"Succeeded": 100}, await fleet.all(run)
    rows = await fleet.query(0, 'select count(*), count(distinct internal_execution_id), count(distinct target_schema) from "Rows"')  # fmt: skip
    assert tuple(rows[0]) == (1000, 100, 100)
    assert [each["attempts"] for each in await fleet.targets_of(run)] == [1] * 100


@pytest.mark.deep
async def test_a_result_that_does_not_fit_on_the_disk_is_rolled_back(
    settings, db, account, targets, tmp_path
):
    async with start_fleet(
        settings, db, targets, tmp_path, account=account, databases=1, outputSpoolSize=2**20
    ) as fleet:
        await fleet.query(0, "create table t (n int)")
        script = "insert into t values (1); select repeat('x', 1000) as text from generate_series(1, 3000)"

        run = await fleet.run(script, **output(fleet))

        (target,) = await fleet.targets_of(run)
        assert (target["end_reason"], target["attempts"]) == ("OutputFailed", 1)
        assert "MUSTER_OUTPUT_SPOOL_SIZE is 1048576 bytes" in target["last_message"]
        assert await fleet.everywhere("select count(*) from t") == [0]


@pytest.mark.deep
async def test_a_full_disk_is_retried_with_the_script_since_nothing_was_committed(
    fleet: Fleet, monkeypatch
):
    create, full = SpoolFolder.create, [1, 2, 3]

    def create_on_full_disk(self, path):
        return Path("/dev/full").open("wb") if full and full.pop() else create(self, path)

    monkeypatch.setattr(SpoolFolder, "create", create_on_full_disk)

    run = await fleet.run(SCRIPT, **output(fleet), options={"jitter": 0})

    assert await fleet.lifecycles(run) == {"Succeeded": 3}
    assert await fleet.everywhere("select array_agg(n) from t") == [[2], [2], [2]]
    assert await written(fleet) == expected(fleet)
    (first, second) = [task for task in await fleet.tasks(run) if task["ordinal"] == 1]
    assert (first["end_reason"], second["end_reason"]) == ("OutputFailed", None)
    assert (
        first["message"] == "The rows can't be written to the host's disk: No space left on device."
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("update jobs_internal.server_directory set disabled = true where name = 'away'", "is disabled"),
        ("insert into jobs_internal.private_endpoint (private_endpoint_id, name, server_id, status, created_by, modified_by)"
         " values (gen_random_uuid(), 'e', '/away', 'Rejected', 'x', 'x')", "has a private endpoint that was rejected"),
        ("update jobs_internal.server_directory set job_credential = null where name = 'away'",
         "No credential is configured for the output"),
        ("delete from jobs_internal.server_directory where name = 'away'", "is not in the account's directory"),
        ("update jobs_internal.server_directory set port = 1 where name = 'away'", "port 1"),
    ],
)  # fmt: skip
async def test_a_server_that_must_not_be_used_gets_no_rows(fleet: Fleet, change, message):
    await fleet.root.execute(AWAY)
    await fleet.root.execute(RETURNED)
    await fleet.job("away", SCRIPT, **output(fleet, server_name="away"), retry_attempts=0)
    await fleet.root.execute(change)

    run = await fleet.start("away")

    assert await fleet.ended(run) == "Failed"
    for each in await fleet.targets_of(run):
        assert (each["end_reason"], each["attempts"]) == ("OutputFailed", 1)
        assert message in each["last_message"]
    assert await fleet.query(0, "select from pg_tables where tablename = 'Rows'") == []
