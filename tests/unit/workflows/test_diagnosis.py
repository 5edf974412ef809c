"""What the doctor says of an account, from the facts."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest

from fsm.launch.protocol import Kind, State
from fsm.launch.workload import Workload
from nodeagent.items import Diagnosed, LockHolder
from workflows.diagnosis import Facts, document

NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)
SILENT = {"beat_by": NOON - timedelta(seconds=1)}


def a_workload(kind, state=State.RUNNING, **more):
    known = {name: None for name in (each.name for each in fields(Workload))}
    return Workload(**known | {"id": UUID(int=7), "kind": kind, "state": state} | more)


def facts(*workloads, state="Ready"):
    return Facts(
        account=SimpleNamespace(observed={"state": state}),
        machine=None,
        workloads=[a_workload(Kind.ENGINE), *workloads],
        launchers=1,
        agents=1,
        now=NOON,
    )


def test_an_account_that_is_ready_and_has_a_live_host_is_healthy():
    diagnosis = document(facts(a_workload(Kind.HOST, **SILENT), a_workload(Kind.HOST)))

    assert (diagnosis["healthy"], diagnosis["advice"], len(diagnosis["hosts"])) == (True, [], 2)


@pytest.mark.parametrize(
    "hosts",
    [[], [a_workload(Kind.HOST, State.FAILURE)], [a_workload(Kind.HOST, **SILENT)]],
)
def test_without_a_live_host_nothing_can_run(hosts):
    diagnosis = document(facts(*hosts))

    assert diagnosis["healthy"] is False
    assert diagnosis["advice"][0].startswith("No host of the account is alive")


@pytest.mark.parametrize("state", ["Creating", "Updating", "Disabled", None])
def test_an_account_that_is_not_ready_is_not_healthy(state):
    diagnosis = document(facts(a_workload(Kind.HOST), state=state))

    assert diagnosis["healthy"] is False


def test_a_session_that_holds_a_lock_of_the_account_is_named_and_makes_it_unhealthy():
    holder = LockHolder(pid=77, user="ada", application="psql", since=NOON)
    database = Diagnosed(holders=(holder,), public_connects=False, close="")

    diagnosis = document(replace(facts(a_workload(Kind.HOST)), database=database))

    assert diagnosis["healthy"] is False
    (advice,) = diagnosis["advice"]
    assert "The session 77 of 'ada' (application 'psql', since 2031-01-01T12:00:00Z)" in advice


def test_a_database_that_everybody_may_connect_to_is_told_and_is_no_illness():
    database = Diagnosed(holders=(), public_connects=True, close="REVOKE it;")

    diagnosis = document(replace(facts(a_workload(Kind.HOST)), database=database))

    assert diagnosis["healthy"] is True
    assert diagnosis["hardening"][0].endswith("REVOKE it;")
