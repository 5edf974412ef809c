"""What the controller hears and lets pass beside what it reserves: nothing is lost, counts twice or waits for ever."""

import dataclasses

import pytest

from engine.core.controller import Controller
from engine.db.membership import HostRow
from engine.db.wakeups import RESULTS
from engine.core.runs.execution_store import ExecutionStore
from engine.db.control_db import ControlDatabase
from muster.core.clock import Clock
from muster.core.errors import Unavailable
from tests.support.engine_fixture import bootstrap
from tests.support.executions import EPOCH
from tests.support.fake_clock import FakeClock
from tests.support.launching import until
from tests.support.core_services import core_context
from tests.support.execution_fixture import (
    FAILED,
    SUCCEEDED,
    Key,
    ExecutionFixture,
    another_run,
    set_steps,
)

pytestmark = pytest.mark.newest


@pytest.fixture
async def controller(account, execution):
    """Its turns are taken by the test; no second passes, so nobody looks without being told."""
    store = ControlDatabase(bootstrap(account, EPOCH))
    service = Controller(dataclasses.replace(core_context(account, store), clock=a_clock()))
    has_slots(service, execution, 2)
    yield service
    service._reset()
    service._planner.disconnect()
    service._executions.disconnect()
    await store.close()


def a_clock() -> FakeClock:
    clock = FakeClock()
    clock.passed = 1000.0
    return clock


@pytest.fixture
def statements(monkeypatch):
    """Those that read completions, in their order, and what is done behind each reservation."""
    made, behind = [], []

    def watched(name: str):
        good = getattr(ExecutionStore, name)

        async def call(self, *args):
            made.append(name)
            rows = await good(self, *args)
            while name == "reserve" and behind:
                await behind.pop()()
            return rows

        monkeypatch.setattr(ExecutionStore, name, call)

    watched("reserve")
    watched("completions")
    return made, behind


def held(controller: Controller) -> set[str]:
    return {str(invocation) for invocation in controller.context.cluster_state.run_state.running}


async def test_runs_that_met_a_pause_which_was_not_heard_of_begin_after_it(
    controller, execution, owner, engine
):
    runs = [(await another_run(owner, engine, execution.job, execution.host)).run for _ in range(2)]
    here = "select count(*) from jobs_internal.job_execution where job_execution_id = any($1) and "

    async def both(what: str) -> bool:
        controller.context.clock.passed += 1  # it looks at everything
        await controller.run_once()
        return await owner.fetchval(here + what, runs) == 2

    await owner.execute("update jobs_internal.instance set paused = true")
    await until(lambda: both("wait_reason = 'AccountPaused' and lifecycle = 'Created'"))

    await owner.execute("update jobs_internal.instance set paused = false")

    await until(lambda: both("lifecycle <> 'Created'"))


async def test_what_is_told_while_a_reservation_is_under_way_is_heard(
    controller, execution, statements
):
    (first,) = await execution.started(1)
    made, behind = statements

    async def tell() -> None:
        await execution.report(results=[first | SUCCEEDED])
        controller.context.wakeups.notify(RESULTS)

    behind.append(tell)
    await controller.run_once()  # there is room for one more of three

    assert made == ["reserve", "completions"]
    assert first["invocation_id"] not in held(controller)
    await controller.run_once()
    assert made == ["reserve", "completions", "reserve"]
    assert len(held(controller)) == 2


async def test_what_came_with_a_reservation_is_not_asked_for(controller, execution, statements):
    first = await a_full_host(controller, execution)
    made, _ = statements
    made.clear()

    await execution.report(results=[first | SUCCEEDED])
    has_slots(controller, execution, 2)
    await controller.run_once()
    assert (made, first["invocation_id"] in held(controller)) == (["reserve"], False)
    await controller.run_once()

    assert made == ["reserve", "reserve"]
    assert [row["lifecycle"] for row in await tasks(execution)] == [
        "Succeeded",
        "Created",
        "Created",
    ]


async def test_a_reservation_of_which_no_answer_came_is_read_again(
    controller, execution, statements
):
    first = await a_full_host(controller, execution)
    made, behind = statements
    made.clear()

    async def lose() -> None:
        raise Unavailable("The control database does not answer.")

    behind.append(lose)
    await execution.report(results=[first | SUCCEEDED])
    has_slots(controller, execution, 2)
    with pytest.raises(Unavailable):
        await controller.run_once()
    assert controller.context.cluster_state.run_state is None
    await controller.run_once()

    assert made[:2] == ["reserve", "reserve"]
    over, *reserved = await tasks(execution)
    assert [over["lifecycle"], *(row["lifecycle"] for row in reserved)] == [
        "Succeeded", "Created", "Created",
    ]  # fmt: skip
    assert held(controller) == {str(row["invocation_id"]) for row in reserved}


async def test_a_retry_that_waits_for_a_slot_times_out(controller, execution, owner):
    await set_steps(owner, timeout_seconds=60)
    first, other = await execution.started(1, 2)
    await execution.report(results=[first | FAILED | {"retry": True}])
    await began_ago(owner, 59.2)
    has_slots(controller, execution, 1)  # which the other has
    await controller.run_once()
    await controller.run_once()
    assert list(waiting(controller)) == [1, 3]

    controller.context.clock.passed += 0.9
    await began_ago(owner, 61)
    await controller.run_once()

    late, never = await execution.target(1), await execution.target(3)
    assert (late["lifecycle"], late["end_reason"]) == ("TimedOut", "TimedOut")
    over = "Its time ran out before the next attempt. Last error: division by zero"
    assert (late["last_message"], late["attempts"]) == (over, 1)
    assert (list(waiting(controller)), never["lifecycle"]) == ([3], "Created")
    assert held(controller) == {other["invocation_id"]}


async def began_ago(owner, seconds: float) -> None:
    """The first target; its pause is over since long."""
    await owner.execute(
        "update jobs_internal.target_execution set start_time = now() - make_interval(secs => $1),"
        " not_before = now() - interval '30 seconds' where ordinal = 1",
        seconds,
    )


def waiting(controller: Controller) -> dict:
    (run,) = controller.context.cluster_state.run_state.runs.values()
    (step,) = run.live
    return step.waiting


async def a_full_host(controller: Controller, execution: ExecutionFixture) -> Key:
    """With the first of three tasks, which the controller holds."""
    (first,) = await execution.started(1)
    has_slots(controller, execution, 1)
    await controller.run_once()
    assert held(controller) == {first["invocation_id"]}
    return first


def has_slots(controller: Controller, execution: ExecutionFixture, slots: int) -> None:
    host = HostRow(execution.host, "machine", 1, slots, "live", Clock().now())
    controller.context.cluster_state.hosts[execution.host] = host


async def tasks(execution: ExecutionFixture) -> list:
    return [await execution.task(ordinal) for ordinal in (1, 2, 3)]
