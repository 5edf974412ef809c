"""What is said before a script."""

from uuid import UUID

from engine.attempt import session_setup
from engine.attempt.sql_text import literal
from engine.model.task import CACHED_RUNS, application_name
from tests.support.attempts import a_step, a_task
from hypothesis import given
from hypothesis import strategies as st


def said(step, task=None, how=session_setup.transactional_setup, **more):
    task = task or a_task(
        job_execution_id=UUID(int=1), invocation_id=UUID(int=2), target_id=UUID(int=3)
    )
    told = {"left": 60.0, "watches_client": True, "preset": True, "unknown": frozenset()} | more
    return how(
        session_setup.SetupContext(task, step, application_name(task.invocation_id), **told)
    ).text


def test_the_whole_message():
    message = said(a_step("select 1"), watches_client=False)

    first, *rest, last = message.split(";")
    assert first == "begin"
    assert all(each.startswith("set local ") for each in rest)
    assert {
        "set local statement_timeout=60000",
        "set local lock_timeout=5000",
        "set local idle_in_transaction_session_timeout=30000",
        "set local application_name='muster 00000000000000000000000000000002'",
        "set local muster.job_name='nightly'",
        "set local muster.attempt='1'",
    } <= set(rest)
    assert "client_connection_check_interval" not in message
    assert last.startswith("select 1 operator(pg_catalog./) pg_catalog.int4(")
    assert "pg_try_advisory_xact_lock(1299542900," in last


def test_what_is_only_read_begins_so_and_may_be_read_anywhere():
    message = said(a_step("select 1", settings={"access": "preferStandby"}))

    assert message.startswith("begin read only;")
    assert "transaction_read_only" not in message


def test_the_time_left_is_never_none_at_all():
    assert "set local statement_timeout=1;" in said(a_step("select 1"), left=-5.0)
    assert "set local statement_timeout=2147483647;" in said(a_step("select 1"), left=1e12)


def test_the_role_is_taken_on_after_everything():
    step = a_step(
        "select 1", guard=True, settings={"role": "it's", "parameters": {"work_mem": "1MB"}}
    )
    message = said(step)

    order = [
        "work_mem",
        "from muster_guard.applied ",
        "session_replication_role",
        "advisory",
        "set_config('role','it''s',true)",
    ]
    assert sorted(order, key=message.index) == order


def test_alone_nothing_is_local_and_no_transaction_begins():
    message = said(
        a_step("vacuum", settings={"access": "readOnly"}), how=session_setup.autocommit_setup
    )

    assert "begin" not in message and "local" not in message and "xact_lock" not in message
    assert "set default_transaction_read_only=on" in message
    assert "set lock_timeout=0;" in message


def test_a_target_of_its_own_is_not_remembered_for_others():
    step = a_step("select 1")
    one = said(step, a_task(database_name="one", attempt=1))
    two = said(step, a_task(database_name="two", attempt=2))

    assert "'one'" in one and "'one'" not in two and "'two'" in two


def test_runs_are_not_mixed_up():
    step = a_step("select 1")
    tasks = [a_task() for _ in range(100)]

    for task in tasks + tasks:
        assert str(task.job_execution_id) in said(step, task)
    assert len(step.runs) <= CACHED_RUNS


def test_the_key_is_the_same_for_all_attempts():
    task = a_task()
    keys = {
        session_setup.lock_key(
            a_task(job_execution_id=task.job_execution_id, target_id=task.target_id, attempt=n)
        )
        for n in range(5)
    }

    assert keys == {session_setup.lock_key(task)}
    assert len({session_setup.lock_key(a_task()) for _ in range(50)}) > 45
    assert all(-(2**31) <= key < 2**31 for key in keys)


@given(st.text())
def test_a_literal_ends_where_it_should_under_both_rules(value):
    text = literal(value)
    inside = text.removeprefix("E")[1:-1].replace("''", "")

    assert "'" not in inside and "\0" not in text
    assert ("\\" not in inside) or text.startswith("E'")
    assert inside.replace("\\\\", "").count("\\") == 0


def test_behind_a_pooler_each_transaction_fixes_its_settings():
    message = said(a_step("select 1"), preset=False)

    assert message.startswith("begin isolation level read committed;")
    assert """;set local search_path="$user", public, pg_temp;""" in message
    assert "set local row_security='on';" in message
    assert "row_security" not in said(a_step("select 1"))


def test_a_role_of_replication_that_the_step_wants_is_left_alone():
    step = a_step("select 1", settings={"parameters": {"Session_Replication_Role": "replica"}})

    assert "'origin'" in said(a_step("select 1"))
    assert "'origin'" not in said(step)
