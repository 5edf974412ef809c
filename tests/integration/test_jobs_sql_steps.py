"""sp_add_jobstep, sp_update_jobstep, sp_delete_jobstep: versions, order, scripts, outputs and options."""

import asyncio

import asyncpg
import pytest

from muster.core.session_settings import RESERVED
from tests.support.definitions import CATALOG_PATHS, SERVERS, a_definer, a_step, some_steps
from tests.support.control_db import installed

ORDER = "select step_id, step_name from jobs.jobsteps where job_name = 'nightly' order by 1"


@pytest.fixture
async def account(settings, db, targets):
    made = await installed(settings, db, targets)
    await made.execute(SERVERS)
    return made


async def order(admin):
    found = await admin.rows(ORDER)
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return "".join(name for _, name in found)


async def test_a_first_step_has_a_name_and_defaults(admin):
    await some_steps(admin)

    assert await a_step(admin, None, command="select 1") == 1

    row = (await admin.connection.fetch("select * from jobs.jobsteps"))[0]
    assert list(row.keys())[:25] == [
        "job_name", "job_id", "job_version", "step_id", "step_name", "command_type",
        "command_source", "command", "credential_name", "target_group_name", "target_group_id",
        "initial_retry_interval_seconds", "maximum_retry_interval_seconds",
        "retry_interval_backoff_multiplier", "retry_attempts", "step_timeout_seconds",
        "output_type", "output_credential_name", "output_subscription_id",
        "output_resource_group_name", "output_server_name", "output_database_name",
        "output_schema_name", "output_table_name", "max_parallelism",
    ]  # fmt: skip
    assert tuple(row)[2:10] == (1, 1, "JobStep", "TSql", "Inline", "select 1", None, "all")
    assert tuple(row)[11:25] == (1, 120, 2.0, 10, 43200, *[None] * 9)
    error = await admin.refused(
        "MU012", "sp_add_jobstep", job_name="nightly", command="x", target_group_name="all"
    )
    assert error.column_name == "step_name"


async def test_steps_make_room_close_up_and_move(admin):
    await some_steps(admin, "a", "b", "c")

    assert await a_step(admin, "d", step_id=2) == 4
    assert await order(admin) == "adbc"
    assert await admin.call("sp_update_jobstep", job_name="nightly", step_name="A", new_id=4) == 5
    assert await order(admin) == "dbca"
    await admin.call("sp_update_jobstep", job_name="nightly", step_id=4, new_id=2)
    assert await order(admin) == "dabc"
    assert await admin.call("sp_delete_jobstep", job_name="nightly", step_id=1) == 7
    assert await order(admin) == "abc"
    assert await a_step(admin, "e", step_id=4) == 8
    assert await order(admin) == "abce"
    for number in (0, 6, -1):
        await admin.refused(
            "MU012", "sp_add_jobstep", job_name="nightly", step_id=number, step_name="x",
            command="x", target_group_name="all",
        )  # fmt: skip
        error = await admin.refused(
            "MU012", "sp_update_jobstep", job_name="nightly", step_id=1, new_id=number or 5
        )
        assert error.column_name == "new_id"


async def test_old_versions_stay_and_unchanged_steps_are_the_same_rows(admin):
    await some_steps(admin, "a", "b")
    versions = (
        "select job_version, string_agg(step_name, '' order by step_id),"
        " array_agg(row_version order by step_id)"
        " from jobs.jobstep_versions group by 1 order by 1"
    )
    job = await admin.value("select row_version from jobs.jobs")

    await admin.call("sp_update_jobstep", job_name="nightly", step_name="b", command="select 2")
    await admin.call("sp_update_jobstep", job_name="nightly", step_name="b", new_id=1)

    rows = await admin.rows(versions)
    assert [(number, names) for number, names, _ in rows] == [
        (1, "a"), (2, "ab"), (3, "ab"), (4, "ba"),
    ]  # fmt: skip
    states = [state for *_, state in rows]
    assert states[0][0] == states[1][0] == states[2][0]
    assert len({*states[1], *states[2], *states[3]}) == 5
    assert await admin.value("select row_version from jobs.jobs") > job


async def test_an_update_that_changes_nothing_makes_no_version(admin):
    await some_steps(admin, "a")

    same = await admin.call(
        "sp_update_jobstep", job_name="nightly", step_id=1, step_name="A", command="select 'a'",
        new_id=1, credential_name="", output_type="", max_parallelism=-1,
    )  # fmt: skip

    assert same == 1
    assert len(await admin.rows("select * from jobs.job_versions")) == 2


async def test_a_step_is_found_by_number_or_name_and_both_must_agree(admin):
    await some_steps(admin, "a", "b")

    await admin.refused("MU012", "sp_delete_jobstep", job_name="nightly")
    await admin.refused("MU010", "sp_delete_jobstep", job_name="nightly", step_id=3)
    await admin.refused("MU010", "sp_delete_jobstep", job_name="nightly", step_id=1, step_name="b")
    await admin.refused(
        "MU011", "sp_update_jobstep", job_name="nightly", step_name="a", new_name="B"
    )
    await admin.refused(
        "MU011", "sp_add_jobstep", job_name="nightly", step_name="A", command="x",
        target_group_name="all",
    )  # fmt: skip
    await admin.call("sp_update_jobstep", job_name="nightly", step_id=1, new_name="A")
    assert await order(admin) == "Ab"
    await admin.call("sp_delete_jobstep", job_name="nightly", step_id=2, step_name="B")
    await admin.call("sp_delete_jobstep", job_name="nightly", step_name="a")
    assert await order(admin) == ""
    assert await a_step(admin, None, command="select 1") == 6


async def test_a_job_has_at_most_a_hundred_steps(admin):
    await some_steps(admin)
    await admin.connection.execute(
        "select jobs.sp_add_jobstep('nightly', step_name => 's' || n, command => 'select 1',"
        " target_group_name => 'all') from generate_series(1, 100) n"
    )

    await admin.refused(
        "MU016", "sp_add_jobstep", job_name="nightly", step_name="x", command="x",
        target_group_name="all",
    )  # fmt: skip
    await admin.call("sp_update_jobstep", job_name="nightly", step_id=100, command="select 2")


async def test_each_value_that_can_not_be_is_refused_with_its_name(admin):
    await some_steps(admin, "a")
    wrong = {
        "command": " \n",
        "command_type": "PowerShell",
        "command_source": "File",
        "credential_name": "nobody",
        "target_group_name": "nowhere",
        "initial_retry_interval_seconds": 0,
        "maximum_retry_interval_seconds": 0,
        "retry_interval_backoff_multiplier": 0.5,
        "retry_attempts": -1,
        "step_timeout_seconds": 0,
        "max_parallelism": 0,
        "output_type": "File",
        "output_credential_name": "nobody",
        "options": {"speed": 1},
    }

    for name, value in wrong.items():
        for call in (
            {"command": "x", "target_group_name": "all", "step_name": "b"},
            {"step_id": 1},
        ):
            function = "sp_update_jobstep" if "step_id" in call else "sp_add_jobstep"
            error = await admin.refused(
                "MU012", function, **{"job_name": "nightly", **call, name: value}
            )
            assert error.column_name == name
    for missing in ("command", "target_group_name"):
        given = {"command": "x", "target_group_name": "all"}
        del given[missing]
        error = await admin.refused(
            "MU012", "sp_add_jobstep", job_name="nightly", step_name="b", **given
        )
        assert error.column_name == missing
    assert await admin.value("select job_version from jobs.jobs") == 1


async def test_a_script_has_at_most_a_mebibyte_and_is_kept_once(account, admin):
    await some_steps(admin)
    largest = "é" * (512 * 1024)

    await admin.refused(
        "MU012", "sp_add_jobstep", job_name="nightly", command=largest + "x",
        target_group_name="all",
    )  # fmt: skip
    await a_step(admin, "a", command=largest)
    await a_step(admin, "b", command=largest)

    assert await admin.value("select command from jobs.jobsteps where step_id = 2") == largest
    assert (await account.fetch("select count(*) from jobs_internal.script"))[0][0] == 1


async def test_variables_are_known_or_refused_outside_of_comments(admin):
    await some_steps(admin)
    right = [
        "select '$(job_name)', $(job_id), $(step_id), '$(target_database_name)', $(attempt)",
        "select 1 -- $(nothing)\n/* $(nothing) ** / $(x) */ , '$(target_label.tier)'",
        "select '$()', '$( x )', '$(1)', $1",
        "/* a */ select 2 /* b **/ -- $(c)",
        "select '/*', '$(job_name)' -- $(c)",
        "/* -- */ select '$(job_name)' -- /*\n",
    ]
    wrong = [
        "select $(nothing)", "select 1 -- x\n, $(JOB_NAME)", "/* a */ $(x) /* b */",
        "/* -- */ $(x)", "select '/*', '$(x)'", "-- /*\n$(x) */",
        "select '$(target_label.)'", "$(job_name) $(job_nam)",
    ]  # fmt: skip

    for number, script in enumerate(right, 1):
        assert await a_step(admin, f"s{number}", command=script) == number
    for script in wrong:
        error = await admin.refused(
            "MU012", "sp_add_jobstep", job_name="nightly", step_name="x", command=script,
            target_group_name="all",
        )  # fmt: skip
        assert error.column_name == "command"
        assert "job_execution_id" in error.hint


async def test_a_text_variable_in_a_dollar_quoted_body_is_refused(admin):
    await some_steps(admin)
    right = [
        "do $$ begin perform $(attempt), '$(job_id)', $(target_label.n); end $$",
        "do $a$ begin perform '$$'; end $a$; select '$(job_name)'",
        "/* $$ /* */ $a$ */ select '$(job_name)', '''$$', E'\\'$$', \"$$\", '$(job_name)' -- $$",
        "select a$b$c, '$(job_name)', x$b$y from t",
        "select '\\', '$(job_name)', $$\\'$$, '$(step_name)'",
        "do $$begin null; end$$; select '$(job_name)', $a$x$$a$, '$(job_name)', $$$$, '$(job_name)'",
        "do $a$ x$a$(job_name); select '$(job_name)'",
        "select E'it''s \\' $$', '$(job_name)', E'$$ \\$(job_name)'",
    ]
    wrong = [
        "do $$ begin perform '$(target_database_name)'; end $$",
        "select '$a$'; do $a$ $(job_name) $a$",
        "select E'\\'' ; do $a$ $$ -- $(step_name)",
        "select like'\\'; do $$ ' $(step_name) $$",
        "do $$begin null; end$$; do $$(job_name)$(job_name)",
        "do $a$ x$b$a '$(job_name)' $a$",
        "do $é_1$ $a$ /* $(target_schema_name) */ $é_1$",
    ]

    for number, script in enumerate(right, 1):
        assert await a_step(admin, f"s{number}", command=script) == number
    for script in wrong:
        error = await admin.refused(
            "MU012", "sp_add_jobstep", job_name="nightly", step_name="x", command=script,
            target_group_name="all",
        )  # fmt: skip
        assert error.column_name == "command"
        assert "current_setting('muster." in error.hint


@pytest.mark.parametrize(
    "script",
    [
        "select '$(job_name)' as " + "a$" * 500_000,
        "select '$(job_name)', '*/" + "/* " * 330_000 + "' -- $(nothing)",
    ],
    ids=["dollars in a name", "comments that are not closed"],
)
async def test_the_time_to_look_for_variables_grows_with_the_text_and_not_with_its_square(
    admin, script
):
    await some_steps(admin)
    await admin.connection.execute("set statement_timeout = '30s'")

    assert await a_step(admin, "s1", command=script) == 1


async def test_an_output_is_complete_and_can_be_reset(admin):
    await some_steps(admin, "a")
    output = {
        "output_type": "SqlDatabase", "output_server_name": "DB2.example.com",
        "output_database_name": "d", "output_table_name": "t",
    }  # fmt: skip
    step = {"job_name": "nightly", "step_id": 1}
    for name in output:
        some = {key: value for key, value in output.items() if key != name}
        error = await admin.refused("MU012", "sp_update_jobstep", **step, **some)
        assert error.column_name == name
    error = await admin.refused(
        "MU015", "sp_update_jobstep", **step, **(output | {"output_server_name": "eu2"})
    )
    assert (error.column_name, "eu1" in error.hint) == ("output_server_name", True)
    for schema in ("pg_catalog", "pg_toast", "information_schema"):
        error = await admin.refused(
            "MU012", "sp_update_jobstep", **step, **output, output_schema_name=schema
        )
        assert error.column_name == "output_schema_name"
    given = {"options": {"output": {"includeTarget": True, "onMismatch": "addColumn"}, "jitter": 0}}
    await admin.call("sp_update_jobstep", **step, **output, **given)
    query = "select concat_ws('|', {}) from jobs.jobsteps".format(", ".join(output))
    assert await admin.value(query) == "SqlDatabase|DB2.example.com|d|t"
    assert await admin.value("select output_schema_name from jobs.jobsteps") == "dbo"
    for name in ("output_schema_name", "output_credential_name", "output_type"):
        await admin.call("sp_update_jobstep", **step, **{name: ""})
        assert await admin.value("select output_schema_name from jobs.jobsteps") == (
            None if name == "output_type" else "dbo"
        )
    assert await admin.value("select options::text from jobs.jobsteps") == '{"jitter": 0}'


async def test_options_are_known_and_sound(admin):
    await some_steps(admin, "a")
    step = {"job_name": "nightly", "step_id": 1}
    right = [
        {"transaction": "none", "advance": "barrier", "onFailure": "continue"},
        {"guard": True, "transaction": "auto", "settings": {"access": "readWrite"}},
        {"guard": "job"}, {"guard": False, "transaction": "none"},
        {"settings": {"lockTimeoutSeconds": 0, "role": "$(target_database_name)_owner",
                      "searchPath": 'a, "b", pg_catalogs', "access": "readOnly",
                      "parameters": {"work_mem": "64 \"MB\" \\", "a.b": ""}}},
        {"idempotent": False, "retryOn": ["40001", "08"],
         "allowEmpty": True, "slotsPerDatabase": 2, "jitter": 0.25},
        {"retryOn": [], "jitter": 1},
        {"verify": {"sql": "select 1", "expect": "value", "value": 3, "skipIfHolds": True,
                    "timeoutSeconds": 5}},
        {"rollout": {"waves": [1, "5%", "12.5%", "100%"], "orderBy": "random(7)",
                     "haltAfterFailures": "3%", "pauseBetween": "PT10M", "gate": "manual"}},
        {"rollout": {"waves": [1], "orderBy": "tier"}},
        {},
    ]  # fmt: skip
    wrong = [
        [], '"x"', {"transaction": "maybe"}, {"guard": 1}, {"settings": 5}, {"settings": {"x": 1}},
        {"settings": {"lockTimeoutSeconds": -1}}, {"settings": {"role": ""}},
        {"settings": {"parameters": {"a": 1}}}, {"settings": {"parameters": {"a b": "1"}}},
        {"rollout": {"waves": []}}, {"rollout": {"waves": [0]}}, {"rollout": {"waves": ["0%"]}},
        {"rollout": {"waves": ["101%"]}}, {"rollout": {"waves": "1"}}, {"rollout": {"gate": "x"}},
        {"rollout": {"gate": "manual"}}, {"rollout": {"waves": [1], "orderBy": "random(x)"}},
        {"rollout": {"haltAfterFailures": 0}}, {"rollout": {"pauseBetween": "10 minutes"}},
        {"rollout": {"pauseBetween": "P"}}, {"rollout": {"waves": [1], "pauseBetween": "P10000D"}},
        {"verify": {}}, {"verify": {"sql": ""}},
        {"verify": {"sql": "select $(x)"}}, {"verify": {"sql": "select 1", "expect": "value"}},
        {"verify": {"sql": "select 1", "expect": "empty", "value": 1}},
        {"verify": {"sql": "select 1", "value": 1}}, {"retryOn": ["4"]},
        {"retryOn": "40001"}, {"jitter": 1.5}, {"jitter": -0.1}, {"slotsPerDatabase": 0},
        {"output": {"onMismatch": "drop"}}, {"output": {"includeTarget": True}}, {"nothing": True}, {"advance": "barrier\n"},
        {"advance": "perTarget", "rollout": {"waves": [1]}}, {"advance": "perTarget"},
        {"guard": "run"}, {"guard": "job", "transaction": "none"},
        {"guard": True, "transaction": "none"}, {"guard": True, "settings": {"access": "readOnly"}},
        *({"settings": {"parameters": {name.title(): "x"}}} for name in (*RESERVED, "muster.job")),
        *({"settings": {"searchPath": path}} for path in CATALOG_PATHS),
    ]  # fmt: skip

    for options in right:
        await admin.call("sp_update_jobstep", **step, options=options)
    for options in wrong:
        error = await admin.refused("MU012", "sp_update_jobstep", **step, options=options)
        assert error.column_name == "options", options
    await admin.call("sp_update_jobstep", **step, options={"guard": None, "jitter": 0})
    assert await admin.value("select options::text from jobs.jobsteps") == '{"jitter": 0}'


async def test_a_written_step_never_changes(account, admin):
    await some_steps(admin, "a")

    with pytest.raises(asyncpg.PostgresError) as caught:
        await account.execute("update jobs_internal.job_step set retry_attempts = 1")

    assert caught.value.sqlstate == "MU013"
    with pytest.raises(asyncpg.PostgresError) as caught:
        await account.execute(
            "insert into jobs_internal.job_step select s.* from jobs_internal.job_step s,"
            " lateral jsonb_populate_record(s, '{\"step_id\": 3, \"name\": \"x\"}') x"
            .replace("select s.*", "select x.*")
        )  # fmt: skip
    assert caught.value.sqlstate == "MU013"


async def test_ten_steps_at_once_are_ten_versions(account, admin):
    await some_steps(admin)

    async def add(number):
        async with a_definer(account) as another:
            return await a_step(another, f"s{number}", step_id=1)

    versions = await asyncio.gather(*(add(number) for number in range(10)))

    assert sorted(versions) == list(range(1, 11))
    assert len(await order(admin)) == 20
