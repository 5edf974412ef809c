"""Why a target waits, as the core knows it."""

from typing import Any

from engine.scheduling.run_state import RunState
from engine.scheduling.runs import StepRun
from engine.db.membership import InstanceState
from engine.context.cluster_state import ClusterState
from engine.core.runs.wait_reason import why
from tests.unit.engine.test_run_state import a_state, a_retry, a_step, reserve


def asked(run_state: RunState, step: StepRun) -> dict[str, Any]:
    """Of its first target."""
    cluster_state = ClusterState(InstanceState(False, False, 1, 1), run_state=run_state)
    return why(cluster_state, step.run.id, 1, 1)


def test_who_waits_for_a_slot_names_what_is_full_and_how_many_are_ahead():
    run_state = a_state(slots=1)
    a_step(run_state, 1, seconds=None)
    reserve(run_state)
    step = a_step(run_state, 1)
    run_state.pick()

    told = asked(run_state, step)

    assert told["waitReason"] == "InstanceSlots"
    assert told["message"] == "1 of 1 task slots of the account are in use."
    assert told["details"] == {"node": "instance", "used": 1, "slots": 1, "ahead": 0}


def test_full_connections_are_counted_by_the_short_name_of_the_server():
    run_state = a_state()
    step = a_step(run_state, 1)
    server = next(iter(run_state.tree.servers.values()))
    server.name, server.slots, server.used = "/subscriptions/s/x/servers/db-7", 4, 4
    run_state.pick()

    told = asked(run_state, step)

    assert told["waitReason"] == "ServerConnections"
    assert told["message"] == "4 of 4 connections of db-7 are in use."


def test_what_a_pause_is_for_is_left_to_the_rows():
    run_state = a_state()
    step = a_step(run_state, 0)
    a_retry(run_state, step, due=101.0, deadline=160.0)

    told = asked(run_state, step)

    assert (told["waitReason"], told["details"]) == (None, {"notBefore": 101.0})


def test_one_that_is_late_waits_for_nothing_any_more():
    run_state = a_state()
    step = a_step(run_state, 0)
    a_retry(run_state, step, deadline=160.0)
    run_state.due(160.0)

    told = asked(run_state, step)

    assert (told["waitReason"], told["message"]) == (None, "Its deadline has passed.")
