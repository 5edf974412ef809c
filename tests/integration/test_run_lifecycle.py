"""How a run comes to its targets: at once, beside everything else, not yet, or not at all; and what that leaves behind."""

import asyncio

import pytest

from engine.core.runs import planner
from engine.core.runs import run_actions
from engine.core.main import Core
from engine.targets.discovery import Discovery
from engine.core.runs.planner import StepPlan, Planner
from tests.support.fleet import Fleet, start_fleet
from tests.support.launching import until

pytestmark = pytest.mark.newest


@pytest.fixture
async def fleet(settings, db, targets, tmp_path):
    async with start_fleet(settings, db, targets, tmp_path) as made:
        yield made


async def slots_are_free(fleet: Fleet) -> bool:
    (core,) = [one.living for one in fleet.alive if isinstance(one.living, Core)]
    run_state = core.hosting.cluster_state.run_state
    return not run_state.runs and run_state.tree.instance.room == run_state.tree.instance.slots


async def test_one_that_is_queued_begins_when_it_may_and_holds_nothing_before(fleet: Fleet):
    await fleet.job("slow", "select pg_sleep(1)")
    await fleet.root.execute("update jobs_internal.job set overlap = 'queueOne'")
    first, second = [await fleet.start("slow") for _ in range(2)]

    assert [await fleet.ended(run) for run in (first, second)] == ["Succeeded", "Succeeded"]

    (one,), (other,) = await fleet.steps(first), await fleet.steps(second)
    assert one["end_time"] <= other["create_time"]
    await until(lambda: slots_are_free(fleet))


async def test_a_large_fleet_is_written_beside_everything_else(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(planner, "MAX_INLINE_TARGETS", 2)

    run = await fleet.run("select 1", "select 2")

    assert await fleet.lifecycles(run) == {"Succeeded": 6}
    await until(lambda: slots_are_free(fleet))


@pytest.mark.parametrize("name, value", [("no_such_parameter", "1"), ("work_mem", "none")])
async def test_it_is_written_by_a_server_that_can_not_watch_its_client_too(
    fleet: Fleet, monkeypatch, name, value
):
    monkeypatch.setattr(planner, "MAX_INLINE_TARGETS", 2)
    refused = f"select pg_catalog.set_config('{name}', '{value}', true)"
    monkeypatch.setitem(planner.Q._texts, "watch_client", refused)

    run = await fleet.run("select 1")

    assert await fleet.lifecycles(run) == {"Succeeded": 3}


async def test_a_server_that_must_be_asked_is_asked_when_the_run_has_begun(fleet: Fleet):
    await fleet.schema_group()

    run = await fleet.run("select 1", group="schemas")

    assert await fleet.lifecycles(run) == {"Succeeded": 1}


async def test_a_run_whose_server_does_not_answer_can_be_stopped(fleet: Fleet, monkeypatch):
    asked = asyncio.Event()

    async def hangs(*_):
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Discovery, "schemas", hangs)
    await fleet.schema_group()
    await fleet.job("listed", "select 1", group="schemas")
    run = await fleet.start("listed")
    await asyncio.wait_for(asked.wait(), 10)

    await fleet.root.execute("select jobs.sp_stop_job($1)", run)

    assert await fleet.ended(run) == "Canceled"
    assert [step["lifecycle"] for step in await fleet.steps(run)] == ["Canceled"]


async def test_a_plan_that_is_refused_breaks_no_other_run(fleet: Fleet, monkeypatch):
    monkeypatch.setattr(run_actions, "FAILURE_PAUSE", 1.0)
    good, refused = Planner.draft, []

    async def bad(self, run, plan, document):
        made = await good(self, run, plan, document)
        if run.job_name != "refused" or refused:
            return made
        refused.append(run)
        said = list(made.said)
        said[7] = ["Nonsense"] * len(said[7])  # types of targets
        return StepPlan(tuple(said), made.columns)

    monkeypatch.setattr(Planner, "draft", bad)
    for name in ("refused", "other"):
        await fleet.job(name, "select 1")

    first, second = await fleet.start("refused"), await fleet.start("other")

    assert [await fleet.ended(run) for run in (second, first)] == ["Succeeded", "Succeeded"]
    assert refused
    await until(lambda: slots_are_free(fleet))
