"""Listing servers again beside the controller: what follows from a failure."""

import asyncio
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest

from engine.core.runs.late_listing import LateListing
from engine.model.group_document import Directory, Document, Group
from engine.model.server import Server
from engine.scheduling.rollout import RolloutRules, StepRollout
from engine.scheduling.run_state import NOT_STARTED, RunState
from engine.scheduling.runs import Run, StepDefinition, StepPhase, StepRun, WaitingTarget
from engine.targets.resolution import Resolution
from muster.core.errors import Unavailable

GROUP = UUID(int=7)
SERVER = Server(server_id="/s", name="s", hosts=("s",), port=5432, ssl_mode="disable")
EMPTY = Document(
    target_group_id=GROUP,
    hash="",
    identity=GROUP,
    groups={GROUP: Group(name="g", members=())},
    credentials={},
    directory=Directory(revision=1, servers=(SERVER,)),
)


def a_step(state: RunState) -> StepRun:
    """Whose only target is a server that is to be listed now."""
    plan = StepDefinition(1, "step", timeout_seconds=60, target_group_name="g")
    run = Run(uuid4(), uuid4(), "job", 1, None, (plan,), {}, begun=True, canceled=False)
    step = StepRun(run, plan, phase=StepPhase.QUEUED)
    run.live.append(step)
    step.rollout = StepRollout(RolloutRules((1,)))
    state.runs[run.id] = run
    place = {"server_id": "/s", "pool_name": None, "database_name": None, "unlisted": True}
    state.load(step, {**NOT_STARTED, **place, "ordinal": 1})
    step.waiting[1].queue.items.clear()
    state.unlisted[step] = [step.waiting[1]]
    return step


async def list_again(state: RunState, *, listing, rows) -> tuple[LateListing, list[Run]]:
    """As the controller does, until the run is woken."""
    woken, ended = [], asyncio.Event()

    def wake(run: Run) -> None:
        woken.append(run)
        ended.set()

    planner = SimpleNamespace(list_again=listing)
    late_listing = LateListing(planner, SimpleNamespace(rows=rows), state, wake)
    late_listing.start()
    await ended.wait()
    return late_listing, woken


async def found(*_):
    return EMPTY, Resolution([], [])


async def unavailable(*_, **__):
    raise Unavailable("It is away.", code="ControlDatabaseUnavailable")


async def test_a_server_that_is_still_away_is_tried_by_a_host():
    state = RunState(4)
    step = a_step(state)

    late_listing, woken = await list_again(state, listing=unavailable, rows=None)

    late_listing.start()
    assert woken == [step.run]
    assert list(step.waiting[1].queue.items) == [1]


async def test_a_join_whose_outcome_is_unknown_lets_memory_be_loaded_again():
    state = RunState(4)
    a_step(state)

    late_listing, _ = await list_again(state, listing=found, rows=unavailable)

    with pytest.raises(Unavailable):
        late_listing.start()


async def test_a_server_without_databases_is_no_target_any_more():
    state = RunState(4)
    step = a_step(state)

    async def removed(*_, **__):
        return [{"ordinal": 1, "skipped": True}]

    await list_again(state, listing=found, rows=removed)

    assert step.finished
    assert step.rollout.unfinished == 0


async def test_a_target_that_ended_meanwhile_is_not_listed():
    state = RunState(4)
    step = a_step(state)
    state.remove(step, 1, None)

    LateListing(SimpleNamespace(), SimpleNamespace(), state, lambda _: None).start()

    assert state.unlisted == {}


def is_due(state: RunState, step: StepRun) -> WaitingTarget:
    """The pause after an attempt has passed."""
    target = step.waiting[1]
    state.unlisted.clear()
    target.due = 1.0
    state.wait(step, target)
    state.due(2.0)
    return target


def test_a_server_of_a_step_of_a_chain_is_tried_by_a_host():
    state = RunState(4)
    step = a_step(state)
    follower = StepDefinition(2, "next", timeout_seconds=60, options={"advance": "perTarget"})
    step.run.steps = (step.plan, follower)

    target = is_due(state, step)

    assert state.unlisted == {}
    assert list(target.queue.items) == [1]


def test_a_server_that_is_the_first_wave_is_tried_by_a_host():
    state = RunState(4)
    step = a_step(state)
    step.rollout.rules = RolloutRules.of({"rollout": {"waves": [1, "100%"]}}, 1)

    target = is_due(state, step)

    assert state.unlisted == {}
    assert list(target.queue.items) == [1]


def test_a_server_does_not_start_while_it_is_listed():
    state = RunState(4)
    step = a_step(state)

    target = is_due(state, step)
    state.enqueue_waiting(step)  # a halted run is resumed

    assert state.unlisted == {step: [target]}
    assert list(target.queue.items) == []
