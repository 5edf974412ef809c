"""Steps, tasks and their variables."""

from uuid import uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.model.credential import VersionedCredential, render_name
from engine.model.server import TargetServer
from engine.model.step import Step
from engine.model.task import Task, variable_values
from engine.model.output import OutputOptions, StepOutput
from muster.core.errors import InvalidRequest
from tests.support.attempts import a_step, a_task


def test_a_step_is_read_from_its_document():
    step = msgspec.json.decode(
        b"""{"jobName": "j", "stepName": "s", "stepId": 2, "targetGroupName": "g", "script": "vacuum",
             "timeoutSeconds": 60, "retryAttempts": 3, "initialRetryIntervalSeconds": 1,
             "maximumRetryIntervalSeconds": 9, "retryIntervalBackoffMultiplier": 1.5, "contentHash": "ff",
             "output": {"serverName": "o", "databaseName": "d", "schemaName": "dbo", "tableName": "t"}, "options": {"retryOn": ["40"], "rollout": {"waves": [1]}, "jitter": 0,
             "settings": {"lockTimeoutSeconds": 2.5, "parameters": {"a.b": "c"}, "access": "readOnly"}, "output": {"onMismatch": "addColumn"}}}""",
        type=Step,
    )

    assert (step.step_id, step.retry_attempts, step.options.retry_on) == (2, 3, ("40",))
    assert (step.lock_timeout, step.read_only, step.autocommit) == (2.5, True, True)
    assert step.options.settings.parameters == {"a.b": "c"}
    assert step.options.output == OutputOptions(include_target=False, on_mismatch="addColumn")
    assert step.output is not None
    assert step.output.table == "dbo.t in d at o"


@pytest.mark.parametrize(
    ("script", "options", "pieces", "autocommit"),
    [
        ("select 1; select 2;", {}, ["select 1", "select 2"], False),
        ("select 1", {"transaction": "none"}, ["select 1"], True),
        ("vacuum full t;", {}, ["vacuum full t"], True),
        ("select 1; selec 2", {}, ["select 1; selec 2"], False),
        ("vacuum t; selec 2", {"transaction": "none"}, ["vacuum t", "selec 2"], True),
        ("vacuum (nonsense", {}, ["vacuum (nonsense"], True),
    ],
)
def test_a_script_is_cut_as_it_will_be_sent(script, options, pieces, autocommit):
    step = a_step(script, **options)

    assert [piece.text for piece in step.parts] == pieces
    assert step.autocommit is autocommit


@pytest.mark.parametrize(
    ("options", "guarded"),
    [
        ({"guard": True}, True),
        ({"guard": "job"}, True),
        ({"guard": "job", "transaction": "none"}, False),
        ({}, False),
        ({"guard": True, "transaction": "none"}, False),
        ({"guard": True, "settings": {"access": "readOnly"}}, False),
    ],
)
def test_a_guard_needs_a_transaction_that_writes(options, guarded):
    assert a_step("select 1", **options).guarded is guarded


@pytest.mark.parametrize(
    ("script", "options", "timeouts"),
    [
        ("vacuum t", {}, [0]),
        ("select 1; select 2", {}, [5, 5]),
        ("alter table t add n int; vacuum t; select 1", {"transaction": "none"}, [5, 0, 5]),
        (
            "vacuum t; select 1",
            {"transaction": "none", "settings": {"lockTimeoutSeconds": 2}},
            [2, 2],
        ),
        ("set lock_timeout = '9s'; vacuum t; select 1", {"transaction": "none"}, [5, 5, 5]),
    ],
)
def test_only_what_queues_patiently_waits_for_locks_without_limit(script, options, timeouts):
    step = a_step(script, **options)

    assert [step.lock_timeout_of(piece) for piece in step.parts] == timeouts


READ_ONLY = {"settings": {"access": "readOnly"}}


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("select count(*) from t", {}),
        ("select 1;", {}),
        ("-- all\nselect '$(target_schema_name)'", {}),
        ("with a as (select 1) select * from a", {}),
        ("table t", {}),
        ("values (1)", {}),
        ("select 1", {"idempotent": True, "retryOn": ["40"]}),
        ("select 1", {"settings": {"role": "r", "searchPath": "a", "lockTimeoutSeconds": 1}}),
        ("select mine(1), pg_sleep(1)", READ_ONLY),
        ("select mine(1)", {"settings": {"access": "preferStandby"}}),
        ("table t for update", READ_ONLY),
    ],
)
def test_a_step_that_is_one_query_which_writes_nothing_goes_along_with_others(script, options):
    assert a_step(script, **options).batchable


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ("select 1; select 2", {}),
        ("", {}),
        ("-- nothing", {}),
        ("select mine(1)", {}),
        ("select pg_sleep(1)", {}),
        ("insert into t values (1)", {}),
        ("insert into t values (1)", READ_ONLY),
        ("do $$ begin end $$", READ_ONLY),
        ("explain select 1", READ_ONLY),
        ("selec 1", {}),
        ("selec 1", READ_ONLY),
        ("select 1 from from t", {}),
        ("select 1 from from t", READ_ONLY),
        ("vacuum t", {}),
        ("select 1", {"transaction": "none"}),
        ("select 1", {"transaction": "none"} | READ_ONLY),
        ("select 1", {"guard": True}),
        ("select 1", {"guard": True} | READ_ONLY),
        ("select 1", {"settings": {"parameters": {"work_mem": "1MB"}}}),
        ("select 1", {"settings": {"parameters": {"work_mem": "1MB"}, "access": "readOnly"}}),
        ("set search_path = a", READ_ONLY),
        ("commit", {}),
    ],
)
def test_any_other_step_goes_alone(script, options):
    assert not a_step(script, **options).batchable


def test_a_step_whose_rows_are_wanted_elsewhere_goes_alone():
    step = a_step("select 1")

    assert not replace(step, output=StepOutput("s", "d", "dbo", "t")).batchable


@pytest.mark.parametrize(
    "other",
    [
        {"server_id": "/another"},
        {"directory": 2},
        {"database_name": "another"},
        {"credential_id": uuid4()},
        {"credential_version": 2},
    ],
)
def test_tasks_share_a_login_on_one_database_that_they_know_alike_with_one_credential(other):
    task = a_task()
    alike = replace(task, invocation_id=uuid4(), ordinal=2, target_id=uuid4(), schema_name="x")

    assert alike.login == task.login
    assert replace(task, **other).login != task.login


def test_a_task_is_a_row():
    row = {name: name for name in ("number", "kind", *Task.__struct_fields__)}

    task = Task.of(row | {"overrides": "{}", "labels": '{"tier": "gold"}'})

    assert (task.run_day, task.tried_at) == ("run_day", "tried_at")
    assert (task.overrides, task.labels) == ({}, {"tier": "gold"})


def test_the_key_of_a_task_begins_an_object_of_json():
    task = a_task(ordinal=7, attempt=2)

    assert msgspec.json.decode(task.key + "}") == {
        "run_day": "2025-01-01", "job_execution_id": str(task.job_execution_id), "step_id": 1,
        "ordinal": 7, "attempt": 2, "invocation_id": str(task.invocation_id),
    }  # fmt: skip


def test_what_a_target_does_not_have_has_no_value():
    task = a_task(
        labels={"tier": "gold", "rank": 3, "on": True, "list": [1, "a"]}, schema_name=None
    )
    found = variable_values(task, a_step("select 1"))

    assert "target_schema_name" not in found
    assert found["job_execution_create_time"] == "2025-01-01T12:00:00+00:00"
    assert {name: value for name, value in found.items() if name.startswith("target_label")} == {
        "target_label.tier": "gold", "target_label.rank": "3", "target_label.on": "true",
        "target_label.list": '[1,"a"]',
    }  # fmt: skip


def test_a_label_can_not_pose_as_another_variable():
    found = variable_values(a_task(labels={"x": "1"}), a_step("select 1"))

    assert found["job_name"] == "nightly"


@given(st.text(max_size=8), st.text(alphabet="ab'$\"", max_size=8), st.integers(0, 60))
def test_a_place_in_what_was_sent_is_found_in_what_was_written(name, label, offset):
    script = "select 'ü' ; select '$(job_name)', \"$(target_label.x)\", $(attempt) , wrong from t where x = '$(job_name)'"
    given = {"job_name": name.replace("\0", ""), "target_label.x": label, "attempt": "12"}
    piece = a_step(script).parts[1]
    sent = piece.rendered(given)

    assert script[piece.origin(sent.index(", wrong") + 3, given) - 1 :].startswith("wrong from")
    place = piece.origin(min(offset, len(sent) - 1) + 1, given)
    assert piece.start < place <= len(script)


def test_names_have_variables_too():
    known = {"target_database_name": 'a"b', "job_name": "j"}

    assert render_name("$(target_database_name)_owner", known) == 'a"b_owner'
    assert render_name("plain", known) == "plain"
    with pytest.raises(InvalidRequest, match=r"\$\(target_schema_name\) has no value"):
        render_name("$(target_schema_name)", known)
    with pytest.raises(InvalidRequest):
        render_name("$(job_name)", {"job_name": "a\0b"})


def test_a_login_is_the_same_credential():
    who = VersionedCredential(
        name="c", username="$(target_database_name)", secret="env:X", credential_id=a_task().target_id,
        row_version=4,
    )  # fmt: skip

    task, step = a_task(database_name="shop"), a_step("select 1")

    login = who.with_variables(variable_values(task, step))

    assert (login.username, login.name, login.row_version) == ("shop", "c", 4)
    assert login.with_variables(variable_values(task, step)) is login


def test_a_step_may_prefer_a_standby():
    server = TargetServer(server_id="/s", name="s", hosts=("h",), port=1, ssl_mode="disable")

    assert server.for_access("readWrite") is server
    preferring = server.for_access("preferStandby")
    assert preferring.endpoint.target_session_attrs == "prefer-standby"
