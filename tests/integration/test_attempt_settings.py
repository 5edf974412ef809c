"""What a script finds around it: variables, role, search_path, access, timeouts, parameters."""

import asyncio

import msgspec
import pytest

from tests.support.attempts import a_target_database, a_step, record_messages, until

pytestmark = [pytest.mark.newest, pytest.mark.deep, pytest.mark.targets]

HOSTILE = "x'); drop table t; --\\' \\\" $$ \" ;\n/* */ ü"


@pytest.fixture
async def target(targets, tmp_path):
    async with a_target_database(targets, tmp_path) as made:
        await made.execute(
            f"set role {made.owner.name}; create table t (id int primary key, v text)"
        )
        yield made


def rows(outcome):
    assert outcome.lifecycle == "Succeeded", outcome
    return outcome.results[-1]["rows"]


async def test_variables_are_put_in_and_can_be_read_as_settings(target):
    task = target.task(labels={"tier": "gold", "n": 7}, schema_name=None, attempt=2)
    outcome = await target.run(
        """select '$(job_name)', '$(job_id)', $(job_version), $(step_id), '$(step_name)',
                  $(job_execution_id), '$(job_execution_create_time)', '$(target_group_name)',
                  '$(target_server_name)', '$(target_database_name)', $(attempt), '$(target_label.tier)',
                  current_setting('muster.job_name'), current_setting('muster.attempt', true)::int,
                  current_setting('muster.target_label.tier'), current_setting('muster.target_label.n'),
                  current_setting('muster.job_execution_id')::uuid = $(job_execution_id)""",
        task,
    )

    assert rows(outcome) == [
        [
            "nightly", str(task.job_id), 3, 1, "first", str(task.job_execution_id),
            "2025-01-01T12:00:00+00:00", "everything", "eu1", target.database, 2, "gold",
            "nightly", 2, "gold", "7", True,
        ]
    ]  # fmt: skip


async def test_hostile_values_stay_values(target):
    task = target.task(labels={"x": HOSTILE, "we-ird name": HOSTILE, "": "e", "1st": "d"})
    outcome = await target.run(
        """select '$(target_label.x)', E'\\n$(target_label.x)', 1 as "$(target_label.x)",
                  current_setting('muster.target_label.x'), current_setting('muster.target_label.we_ird_name'),
                  current_setting('muster.target_label._1st'), current_setting('muster.target_label._')""",
        task,
    )

    assert rows(outcome) == [[HOSTILE, "\n" + HOSTILE, 1, HOSTILE, HOSTILE, "d", "e"]]
    assert outcome.results[0]["columns"][2]["name"].startswith("x'); drop")
    assert await target.value("select to_regclass('t') is not null")


async def test_a_text_value_is_not_put_into_a_dollar_quoted_body(target):
    """A step may have been stored by an older version, and a label's value is known only here."""
    hostile = "x'; create table public.hit (); --"
    task = target.task(labels={"x": hostile, "n": 7})

    refused = await target.run("do $$ begin perform '$(target_label.x)'; end $$", task)
    taken = await target.run(
        "do $$ begin perform $(target_label.n), current_setting('muster.target_label.x'); end $$",
        task,
    )

    assert (refused.lifecycle, refused.reason) == ("Failed", "StatementFailed")
    assert "current_setting('muster.target_label.x', true)" in refused.message
    assert taken.lifecycle == "Succeeded"
    assert await target.value("select to_regclass('public.hit') is null")


async def test_values_stay_values_where_backslashes_escape(target):
    await target.execute(f"alter role {target.owner.name} set standard_conforming_strings = off")
    await target.execute(f"alter role {target.owner.name} set escape_string_warning = off")

    outcome = await target.run("select '$(target_label.x)'", target.task(labels={"x": HOSTILE}))

    assert rows(outcome) == [[HOSTILE]]
    assert await target.value("select to_regclass('t') is not null")


async def test_a_script_that_changes_how_strings_are_read_gets_no_values(target):
    outcome = await target.run(
        "set local standard_conforming_strings = off; select '$(target_label.x)'",
        target.task(labels={"x": HOSTILE}),
    )

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == (
        "Failed",
        "StatementFailed",
        False,
    )
    assert "standard_conforming_strings" in outcome.message


async def test_a_variable_without_a_value_fails_before_its_statement(target):
    outcome = await target.run("insert into t values (1); select '$(target_schema_name)'")

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == (
        "Failed",
        "StatementFailed",
        False,
    )
    assert "$(target_schema_name) has no value here" in outcome.message
    assert await target.value("select count(*) from t") == 0


async def test_a_role_is_taken_on_and_named_by_the_target(target):
    role = f"{target.database}_owner"
    await target.execute(f"create role {role}; grant {role} to {target.owner.name}")
    try:
        named = await target.run(
            "select current_user::text, session_user::text",
            settings={"role": "$(target_database_name)_owner"},
        )
        wrong = await target.run("select 1", settings={"role": 'no"body'})
        valueless = await target.run("select 1", settings={"role": "$(target_schema_name)"})
        after = await target.run("select current_user::text")
    finally:
        await target.execute(f"drop owned by {role}; drop role {role}")

    assert rows(named) == [[role, target.owner.name]]
    assert (wrong.lifecycle, wrong.retry) == ("Failed", False)
    assert 'role "no"body" does not exist' in wrong.message
    assert (valueless.lifecycle, valueless.reason) == ("Failed", "StatementFailed")
    assert rows(after) == [[target.owner.name]]


async def test_a_login_is_named_by_the_target(target):
    who = target.who()
    named = msgspec.structs.replace(who, username="$(target_database_name)")

    outcome = await target.run("select session_user::text", who=named)

    assert rows(outcome) == [[target.database]]


async def test_a_schema_is_the_search_path(target):
    await target.execute(
        f"set role {target.owner.name};"
        + 'create schema "te nant""s"; create table "te nant""s".here (); create schema other'
    )

    schema = await target.run(
        "select current_schemas(false)::text, to_regclass('here') is not null",
        target.task(schema_name='te nant"s', target_type="SqlSchema"),
        settings={"searchPath": "other"},
    )
    wanted = await target.run("show search_path", settings={"searchPath": 'other, "te nant""s"'})
    after = await target.run("show search_path")

    assert rows(schema) == [['{"te nant\\"s"}', True]]
    assert rows(wanted) == [['other, "te nant""s", pg_temp']]
    assert rows(after) == [['"$user", public, pg_temp']]


async def test_a_reading_step_writes_nothing_and_ends_with_its_last_statement(target):
    session = await target.lend()
    said = record_messages(session)
    target.sessions.give_back(session)

    outcome = await target.run("select 1; select 2", settings={"access": "readOnly"})
    writes = await target.run("select 1; insert into t values (1)", settings={"access": "readOnly"})
    sneaks = await target.run(
        "set transaction read write; insert into t values (1)", settings={"access": "readOnly"}
    )

    assert rows(outcome) == [[2]]
    assert [each["tag"] for each in outcome.results] == ["SELECT 1", "SELECT 1"]
    sent = [text for text in said if not text.startswith("discard")]
    assert sent[0].startswith(
        "/* nightly / first: select 1 */ begin read only;set local lock_timeout"
    )
    assert sent[0].endswith(";select 1")
    assert sent[1] == "select 2\n;commit"
    assert (writes.sqlstate, writes.reason, writes.retry) == ("25006", "StatementFailed", False)
    assert (sneaks.lifecycle, sneaks.reason) == ("Failed", "StatementFailed")
    assert await target.value("select count(*) from t") == 0


async def test_a_target_that_takes_no_writes_is_seen_before_the_script(target):
    """Behind a pooler, where the setting is in force when the transaction begins, as it is on a standby."""
    await target.run("select 1", guard=True)
    await target.execute(f"alter role {target.owner.name} set default_transaction_read_only = on")
    server = msgspec.structs.replace(target.server, pooling="session")

    together = await target.run("select 1", server=server)
    alone = await target.run("vacuum t", server=server)
    guarded = await target.run("select 1", server=server, guard=True)
    reading = await target.run("select 1", server=server, settings={"access": "readOnly"})

    for outcome in (together, alone, guarded):
        assert (outcome.lifecycle, outcome.reason, outcome.retry) == (
            "Failed",
            "TargetReadOnly",
            True,
        )
        assert outcome.results == []
    assert rows(reading) == [[1]]


async def test_the_session_says_who_it_is_and_how_long_it_may_take(target):
    task = target.task()
    outcome = await target.run(
        """select current_setting('application_name'), current_setting('lock_timeout'),
                  current_setting('idle_in_transaction_session_timeout'),
                  current_setting('client_connection_check_interval', true),
                  (select setting::int from pg_settings where name = 'statement_timeout')""",
        task,
        within=20,
        settings={"lockTimeoutSeconds": 1.5},
    )

    [[name, lock, idle, check, statement]] = rows(outcome)
    assert name == f"muster {task.invocation_id.hex}"
    assert (lock, idle) == ("1500ms", "30s")
    assert check == ("1s" if await target.watches_client() else None)
    assert 0 < statement <= 20_000


async def test_locks_are_waited_for_five_seconds_and_by_vacuum_without_end(target):
    together = await target.run("show lock_timeout")
    several = await target.run("show lock_timeout; select 1", transaction="none")

    assert rows(together) == [["5s"]]
    assert several.results[0]["rows"] == [["5s"]]
    assert a_step("vacuum t").lock_timeout == 0
    assert a_step("create index concurrently i on t (id)").lock_timeout == 0
    assert a_step("reindex (concurrently) table t").lock_timeout == 0
    assert a_step("drop database x").lock_timeout == 5
    assert a_step("vacuum t", settings={"lockTimeoutSeconds": 3}).lock_timeout == 3


async def test_parameters_are_set_and_unknown_ones_are_told(target):
    given = {
        "work_mem": "7MB", "Search_Path": "pg_catalog, public", "no_such_thing": "1", "app.tenant": "it's",
    }  # fmt: skip
    script = "select current_setting('work_mem'), current_setting('search_path'), current_setting('app.tenant')"
    first = await target.run(script, settings={"parameters": given})
    again = await target.run(script, settings={"parameters": given})
    alone = await target.run(script, transaction="none", settings={"parameters": given})
    wrong = await target.run(script, settings={"parameters": {"work_mem": "a lot"}})

    for outcome in (first, again, alone):
        assert rows(outcome) == [["7MB", "pg_catalog, public", "it's"]]
        assert [each["message"] for each in outcome.notices] == [
            "The server does not know the parameter no_such_thing: left out."
        ]
    assert (wrong.lifecycle, wrong.sqlstate) == ("Failed", "22023")


async def test_a_lock_that_is_not_given_names_who_holds_it(target):
    async with target.connection(server_settings={"application_name": "the batch"}) as other:
        await other.execute("begin; lock table t in access exclusive mode")
        outcome = await target.run("select * from t", settings={"lockTimeoutSeconds": 1})
        pid = other.get_server_pid()

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", "LockTimeout", True)
    assert outcome.sqlstate == "55P03"
    [blocker] = outcome.blockers
    assert blocker["pid"] == pid
    # Another role's sessions show no more than their pids unless one may read all.
    await target.execute(f"grant pg_read_all_stats to {target.owner.name}")
    async with target.connection(server_settings={"application_name": "the batch"}) as other:
        await other.execute("begin; lock table t in access exclusive mode")
        outcome = await target.run("select * from t", settings={"lockTimeoutSeconds": 1})

    [blocker] = outcome.blockers
    assert (blocker["application_name"], blocker["state"]) == ("the batch", "idle in transaction")
    assert blocker["since"] is not None and blocker["query_start"] is not None
    msgspec.json.encode(outcome)


async def test_what_runs_long_without_a_lock_has_no_blockers(target):
    outcome = await target.run(
        "select pg_sleep(0.4); select 1/0", settings={"lockTimeoutSeconds": 0.2}
    )

    assert outcome.sqlstate == "22012"
    assert outcome.blockers == []


async def test_a_statement_that_outlasts_the_time_is_timed_out(target):
    outcome = await target.run("insert into t values (1); select pg_sleep(60)", within=0.5)

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("TimedOut", "TimedOut", True)
    assert outcome.statement_no == 1
    assert await target.value("select count(*) from t") == 0


async def test_a_script_may_not_give_itself_more_time(target):
    outcome = await target.run("set local statement_timeout = 0; select pg_sleep(60)", within=0.5)

    assert (outcome.lifecycle, outcome.cancel_method) == ("TimedOut", "protocol")


async def test_many_short_statements_are_timed_out_as_well(target):
    outcome = await target.run("select pg_sleep(0.3);" * 100, within=0.7)

    assert (outcome.lifecycle, outcome.reason) == ("TimedOut", "TimedOut")
    assert outcome.statement_no < 10


async def test_a_cancelled_statement_with_time_left_is_tried_again(target):
    running = asyncio.create_task(target.run("select pg_sleep(60)"))
    pid = await until(
        lambda: target.value(
            "select pid from pg_stat_activity where wait_event = 'PgSleep' and usename = $1",
            target.owner.name,
        )  # fmt: skip
    )
    await target.execute(f"select pg_cancel_backend({pid})")
    outcome = await running

    assert (outcome.lifecycle, outcome.reason, outcome.retry) == ("Failed", "StatementFailed", True)
    assert outcome.sqlstate == "57014"


async def test_who_looks_sees_what_runs(target):
    script = "/* it's */ select pg_sleep(60), '*/ ; drop table t; /*'"
    running = asyncio.create_task(target.run(script))
    seen = await until(
        lambda: target.value(
            "select query from pg_stat_activity where wait_event = 'PgSleep' and usename = $1",
            target.owner.name,
        )  # fmt: skip
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert seen.startswith(
        "/* nightly / first: / * it's * / select pg_sleep(60), '* / ; drop table t; / *' */ begin;"
    )
    assert await target.value("select to_regclass('t') is not null")


async def test_an_error_of_the_prologue_has_no_place_in_the_script(target):
    outcome = await target.run("select 1", settings={"parameters": {"work_mem": "a lot"}})
    first = await target.run("select missing", settings={"role": target.owner.name})

    assert (outcome.sqlstate, outcome.position, outcome.statement_no) == ("22023", None, None)
    assert (first.sqlstate, first.position) == ("42703", 8)
