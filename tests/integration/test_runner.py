"""The runner and the dispatcher on a real database, with toy lifecycles."""

import asyncio
import contextlib
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from uuid import uuid4

import asyncpg
import pytest

from fsm.dispatcher import Dispatcher
from fsm.lifecycle_table import Done, End, Lifecycle, Rest, Step, Wait
from fsm.runner import Runner, Turn
from fsm.signals import send
from muster.core.clock import Clock
from muster.core.db import open_database
from muster.core.errors import Internal, Unavailable
from muster.core.wake import Wake
from tests.support.fake_clusters import FakeClusters
from tests.support.invariants import violations
from tests.support.lifecycle_fixture import World, unhurried


class S(StrEnum):
    WORKING = "working"
    MORE = "more"
    READY = "ready"
    ENDING = "ending"
    FAILED = "failed"
    ENDED = "ended"


class Toy:
    """A lifecycle whose work the test decides."""

    def __init__(self) -> None:
        self.calls: Counter = Counter()
        self.commands: list = []
        self.result = lambda ctx: Done()
        minute = timedelta(minutes=1)
        self.lifecycle = Lifecycle(
            "server",
            (
                Step(S.WORKING, "Creating", "Creating", self.work, S.MORE, minute, S.FAILED),
                Step(S.MORE, "Creating", "Creating", self.work, S.READY, minute, S.FAILED),
                Rest(S.READY, "Ready", "Succeeded", {"update": S.WORKING, "delete": S.ENDING}),
                Step(S.ENDING, "Deleting", "Deleting", self.work, S.ENDED, minute, S.FAILED),
                Rest(S.FAILED, "Disabled", "Failed", {"update": S.WORKING, "delete": S.ENDING}),
                End(S.ENDED),
            ),
            shown_as="state",
            interrupts={"delete": S.ENDING},
        )

    async def work(self, ctx):
        self.calls[ctx.machine.uid, ctx.machine.state] += 1
        self.commands.append(ctx.command_id)
        result = self.result(ctx)
        return await result if asyncio.iscoroutine(result) else result


@pytest.fixture
def toy(monkeypatch) -> Toy:
    toy = Toy()
    monkeypatch.setitem(
        __import__("fsm.lifecycles", fromlist=["x"]).LIFECYCLES, "server", toy.lifecycle
    )
    return toy


@pytest.fixture
def world(db, settings, toy) -> World:
    return World(db, settings, None, FakeClusters(None), lifecycles={"server": toy.lifecycle})


@contextlib.asynccontextmanager
async def dispatched(world, count=1, clock=None, wake=None):
    """Real time: dispatchers as processes run them."""
    stop = asyncio.Event()
    services = replace(world.services, clock=clock or Clock())
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            carrier = wake or Wake(world.settings, world.db)
            group.create_task(carrier.run(stop))
            runner = Runner(services, f"dispatched-{number}")
            group.create_task(Dispatcher(runner, carrier).run(stop))
        try:
            yield
        finally:
            stop.set()


async def ended(world, asked, seconds=10):
    async with asyncio.timeout(seconds):
        while not (await world.operation(asked)).ended_at:
            await asyncio.sleep(0.01)
    return await world.operation(asked)


async def test_many_runners_do_each_step_once(world, toy):
    asked = [await world.put_server() for _ in range(20)]

    async with dispatched(world, count=3):
        statuses = {(await ended(world, each)).status for each in asked}

    assert statuses == {"Succeeded"}
    assert set(toy.calls.values()) == {1}
    assert len(toy.calls) == 40
    assert await violations(world.db) == []


async def test_a_poisoned_machine_holds_nobody_up(world, toy):
    poisoned = await world.put_server()
    healthy = [await world.put_server() for _ in range(5)]

    def result(ctx):
        if ctx.machine.uid == poisoned.uid:
            raise ZeroDivisionError
        return Done()

    toy.result = result
    async with dispatched(world):
        for each in healthy:
            assert (await ended(world, each)).status == "Succeeded"
    assert (await world.operation(poisoned)).status == "InProgress"
    assert (await world.db.fetchval("select last_error from machine where uid = $1", poisoned.uid))[
        "code"
    ] == "InternalServerError"


async def test_a_machine_whose_record_fails_does_not_spin(world, toy):
    asked = await world.put_server()
    await world.db.execute("update machine set lifecycle = 'unheard of' where uid = $1", asked.uid)
    other = await world.put_server()

    async with dispatched(world):
        assert (await ended(world, other)).status == "Succeeded"


async def test_losing_every_notification_costs_only_latency(world, toy, monkeypatch):
    monkeypatch.setattr(Wake, "_wake", lambda *_: None)
    async with dispatched(world):
        await asyncio.sleep(0.3)
        asked = await world.put_server()
        assert (await ended(world, asked, 3)).status == "Succeeded"


async def test_resting_machines_cost_nothing(world, toy):
    for _ in range(5):
        await world.put_server()
    await world.run()
    before = toy.calls.copy()
    touched = await world.db.fetchval("select sum(version) from machine")

    async with dispatched(world):
        await asyncio.sleep(0.5)

    assert toy.calls == before
    assert await world.db.fetchval("select sum(version) from machine") == touched


async def test_a_stopped_dispatcher_gives_its_machine_back(world, toy, monkeypatch):
    monkeypatch.setattr("fsm.dispatcher.GRACE", timedelta(milliseconds=50))
    began = asyncio.Event()

    async def hang():
        began.set()
        await asyncio.sleep(60)

    toy.result = lambda ctx: hang()
    asked = await world.put_server()
    async with dispatched(world):
        await began.wait()

    row = await world.db.fetchrow("select * from machine where uid = $1", asked.uid)
    assert row["lease_owner"] is None
    toy.result = lambda ctx: Done()
    assert await world.step(asked) is Turn.MOVED


async def test_a_repeat_is_the_same_command_and_another_visit_is_not(world, toy):
    toy.result = lambda ctx: (
        Wait(timedelta(seconds=1), "not yet") if len(toy.commands) < 3 else Done()
    )
    asked = await world.put_server()
    await world.run()

    assert len(set(toy.commands[:3])) == 1
    await world.update(asked)
    await world.run()
    assert len(set(toy.commands)) == 4


async def test_waiting_says_why(world, toy):
    toy.result = lambda ctx: Wait(timedelta(seconds=5), "three databases are left")
    asked = await world.put_server()
    assert await world.step(asked) is Turn.RESTS
    assert await world.step(asked) is Turn.NOTHING

    row = await world.db.fetchrow("select * from machine where uid = $1", asked.uid)
    assert row["waiting_for"] == "three databases are left"
    await world.run()
    assert "three databases are left" in (await world.operation(asked)).error["message"]


async def test_the_deadline_is_kept_and_the_last_error_told(world, toy):
    def result(ctx):
        raise Unavailable("The disk is full.", code="DiskFull")

    toy.result = result
    world.settings = unhurried(world.settings)
    asked = await world.put_server()
    await world.run()

    assert (await world.operation(asked)).error == {
        "code": "DiskFull",
        "message": "The disk is full.",
    }
    assert await world.path(asked) == ["working", "failed"]
    assert 59 < world.clock.passed < 75


async def test_signals_are_answered_in_order(world, toy):
    asked = await world.put_server()
    async with world.db.transaction() as tx:
        for name in ("first", "update", "update"):
            await send(
                tx,
                world.lifecycles,
                uid=asked.uid,
                name=name,
                operation_id=None,
                payload={"n": name},
            )
    await world.run()

    assert (await world.path(asked)).count("working") == 3
    assert await world.db.fetchval("select count(*) from signal where taken_at is null") == 0


async def test_a_signal_that_is_impossible_fails_its_operation(world, toy):
    asked = await world.put_server()
    await world.run()
    async with world.db.transaction() as tx:
        operation = await world._begin(tx, asked.id, asked.uid, "post")
        await send(
            tx, world.lifecycles, uid=asked.uid, name="dance", operation_id=operation, payload={}
        )
    await world.run()

    assert (await world.operation(replace(asked, operation_id=operation))).error[
        "code"
    ] == "OperationNotAllowed"


async def test_delete_overtakes_an_update_that_waits(world, toy):
    asked = await world.put_server()
    await world.run()
    updated = await world.update(asked)
    deleted = await world.delete(asked)
    await world.run()

    assert (await world.operation(updated)).status == "Canceled"
    assert (await world.operation(deleted)).status == "Succeeded"
    assert "working" not in (await world.path(asked))[3:]
    assert await violations(world.db) == []


async def test_delete_during_a_step_takes_over_when_it_is_recorded(world, toy):
    asked = await world.put_server()

    async def meanwhile():
        await world.delete(asked)
        return Done(scratch={"made": True})

    toy.result = lambda ctx: meanwhile() if ctx.machine.state == "working" else Done()
    assert await world.step(asked) is Turn.MOVED

    assert await world.state(asked) == "ending"
    assert (await world.resource(asked))["provisioning_state"] == "Deleting"
    scratch = await world.db.fetchval("select scratch from machine where uid = $1", asked.uid)
    assert scratch["made"] is True


async def test_a_signal_to_nobody_is_an_error_of_ours(world, toy):
    with pytest.raises(Internal):
        async with world.db.transaction() as tx:
            await send(tx, world.lifecycles, uid=uuid4(), name="x", operation_id=None, payload={})


async def test_the_lease_is_measured_by_the_database(world, toy):
    asked = await world.put_server()
    one, two = world.runner(), world.runner()
    outcomes = []

    async def steal():
        outcomes.append(await two.turn(asked.uid))
        await world.advance(world.settings.lease)
        toy.result = lambda ctx: Done()
        outcomes.append(await two.turn(asked.uid))
        return Done()

    toy.result = lambda ctx: steal()
    outcomes.append(await one.turn(asked.uid))

    assert outcomes == [Turn.NOTHING, Turn.MOVED, Turn.LOST]
    assert await world.path(asked) == ["working", "more"]


async def test_the_database_may_hang_up_at_any_moment(world, toy, database_url):
    """Sessions are ended under load; every accepted request still comes to its end."""

    async def work():
        await asyncio.sleep(0.02)
        return Done()

    toy.result = lambda ctx: work()
    world.settings = replace(
        world.settings, lease=timedelta(seconds=0.6), step_limit=timedelta(seconds=0.4)
    )
    asked = [await world.put_server() for _ in range(20)]
    killer = await asyncpg.connect(database_url)
    pool = await open_database(world.settings, application="muster-victim")
    world.db, patient = pool, world.db
    async with dispatched(world, count=2):
        for _ in range(10):
            await killer.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name in"
                " ('muster-victim', 'muster-wake') and datname = current_database()"
            )
            await asyncio.sleep(0.05)
        world.db = patient
        assert {(await ended(world, each)).status for each in asked} == {"Succeeded"}
        world.db = pool
    await killer.close()
    await pool.close()

    assert await violations(patient, [each.operation_id for each in asked]) == []
