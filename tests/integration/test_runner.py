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
from tests.support.lifecycle_fixture import Lifecycles, unhurried


class S(StrEnum):
    WORKING = "working"
    MORE = "more"
    READY = "ready"
    ENDING = "ending"
    FAILED = "failed"
    ENDED = "ended"


class FakeLifecycle:
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
def fake_lifecycle(monkeypatch) -> FakeLifecycle:
    fake_lifecycle = FakeLifecycle()
    monkeypatch.setitem(
        __import__("fsm.lifecycles", fromlist=["x"]).LIFECYCLES, "server", fake_lifecycle.lifecycle
    )
    return fake_lifecycle


@pytest.fixture
def lifecycles(db, settings, fake_lifecycle) -> Lifecycles:
    return Lifecycles(
        db, settings, None, FakeClusters(None), lifecycles={"server": fake_lifecycle.lifecycle}
    )


@contextlib.asynccontextmanager
async def dispatched(lifecycles, count=1, clock=None, wake=None):
    """Real time: dispatchers as processes run them."""
    stop = asyncio.Event()
    services = replace(lifecycles.services, clock=clock or Clock())
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            carrier = wake or Wake(lifecycles.settings, lifecycles.db)
            group.create_task(carrier.run(stop))
            runner = Runner(services, f"dispatched-{number}")
            group.create_task(Dispatcher(runner, carrier).run(stop))
        try:
            yield
        finally:
            stop.set()


async def ended(lifecycles, handle, seconds=10):
    async with asyncio.timeout(seconds):
        while not (await lifecycles.operation(handle)).ended_at:
            await asyncio.sleep(0.01)
    return await lifecycles.operation(handle)


async def test_many_runners_do_each_step_once(lifecycles, fake_lifecycle):
    handle = [await lifecycles.put_server() for _ in range(20)]

    async with dispatched(lifecycles, count=3):
        statuses = {(await ended(lifecycles, each)).status for each in handle}

    assert statuses == {"Succeeded"}
    assert set(fake_lifecycle.calls.values()) == {1}
    assert len(fake_lifecycle.calls) == 40
    assert await violations(lifecycles.db) == []


async def test_a_poisoned_machine_holds_nobody_up(lifecycles, fake_lifecycle):
    poisoned = await lifecycles.put_server()
    healthy = [await lifecycles.put_server() for _ in range(5)]

    def result(ctx):
        if ctx.machine.uid == poisoned.uid:
            raise ZeroDivisionError
        return Done()

    fake_lifecycle.result = result
    async with dispatched(lifecycles):
        for each in healthy:
            assert (await ended(lifecycles, each)).status == "Succeeded"
    assert (await lifecycles.operation(poisoned)).status == "InProgress"
    assert (
        await lifecycles.db.fetchval("select last_error from machine where uid = $1", poisoned.uid)
    )["code"] == "InternalServerError"


async def test_a_machine_whose_record_fails_does_not_spin(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()
    await lifecycles.db.execute(
        "update machine set lifecycle = 'unheard of' where uid = $1", handle.uid
    )
    other = await lifecycles.put_server()

    async with dispatched(lifecycles):
        assert (await ended(lifecycles, other)).status == "Succeeded"


async def test_losing_every_notification_costs_only_latency(
    lifecycles, fake_lifecycle, monkeypatch
):
    monkeypatch.setattr(Wake, "_wake", lambda *_: None)
    async with dispatched(lifecycles):
        await asyncio.sleep(0.3)
        handle = await lifecycles.put_server()
        assert (await ended(lifecycles, handle, 3)).status == "Succeeded"


async def test_resting_machines_cost_nothing(lifecycles, fake_lifecycle):
    for _ in range(5):
        await lifecycles.put_server()
    await lifecycles.run()
    before = fake_lifecycle.calls.copy()
    touched = await lifecycles.db.fetchval("select sum(version) from machine")

    async with dispatched(lifecycles):
        await asyncio.sleep(0.5)

    assert fake_lifecycle.calls == before
    assert await lifecycles.db.fetchval("select sum(version) from machine") == touched


async def test_a_stopped_dispatcher_gives_its_machine_back(lifecycles, fake_lifecycle, monkeypatch):
    monkeypatch.setattr("fsm.dispatcher.GRACE", timedelta(milliseconds=50))
    began = asyncio.Event()

    async def hang():
        began.set()
        await asyncio.sleep(60)

    fake_lifecycle.result = lambda ctx: hang()
    handle = await lifecycles.put_server()
    async with dispatched(lifecycles):
        await began.wait()

    row = await lifecycles.db.fetchrow("select * from machine where uid = $1", handle.uid)
    assert row["lease_owner"] is None
    fake_lifecycle.result = lambda ctx: Done()
    assert await lifecycles.step(handle) is Turn.MOVED


async def test_a_repeat_is_the_same_command_and_another_visit_is_not(lifecycles, fake_lifecycle):
    fake_lifecycle.result = lambda ctx: (
        Wait(timedelta(seconds=1), "not yet") if len(fake_lifecycle.commands) < 3 else Done()
    )
    handle = await lifecycles.put_server()
    await lifecycles.run()

    assert len(set(fake_lifecycle.commands[:3])) == 1
    await lifecycles.update(handle)
    await lifecycles.run()
    assert len(set(fake_lifecycle.commands)) == 4


async def test_waiting_says_why(lifecycles, fake_lifecycle):
    fake_lifecycle.result = lambda ctx: Wait(timedelta(seconds=5), "three databases are left")
    handle = await lifecycles.put_server()
    assert await lifecycles.step(handle) is Turn.RESTS
    assert await lifecycles.step(handle) is Turn.NOTHING

    row = await lifecycles.db.fetchrow("select * from machine where uid = $1", handle.uid)
    assert row["waiting_for"] == "three databases are left"
    await lifecycles.run()
    assert "three databases are left" in (await lifecycles.operation(handle)).error["message"]


async def test_the_deadline_is_kept_and_the_last_error_told(lifecycles, fake_lifecycle):
    def result(ctx):
        raise Unavailable("The disk is full.", code="DiskFull")

    fake_lifecycle.result = result
    lifecycles.settings = unhurried(lifecycles.settings)
    handle = await lifecycles.put_server()
    await lifecycles.run()

    assert (await lifecycles.operation(handle)).error == {
        "code": "DiskFull",
        "message": "The disk is full.",
    }
    assert await lifecycles.path(handle) == ["working", "failed"]
    assert 59 < lifecycles.clock.passed < 75


async def test_signals_are_answered_in_order(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()
    async with lifecycles.db.transaction() as tx:
        for name in ("first", "update", "update"):
            await send(
                tx,
                lifecycles.lifecycles,
                uid=handle.uid,
                name=name,
                operation_id=None,
                payload={"n": name},
            )
    await lifecycles.run()

    assert (await lifecycles.path(handle)).count("working") == 3
    assert await lifecycles.db.fetchval("select count(*) from signal where taken_at is null") == 0


async def test_a_signal_that_is_impossible_fails_its_operation(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()
    await lifecycles.run()
    async with lifecycles.db.transaction() as tx:
        operation = await lifecycles._begin(tx, handle.id, handle.uid, "post")
        await send(
            tx,
            lifecycles.lifecycles,
            uid=handle.uid,
            name="dance",
            operation_id=operation,
            payload={},
        )
    await lifecycles.run()

    assert (await lifecycles.operation(replace(handle, operation_id=operation))).error[
        "code"
    ] == "OperationNotAllowed"


async def test_delete_overtakes_an_update_that_waits(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()
    await lifecycles.run()
    updated = await lifecycles.update(handle)
    deleted = await lifecycles.delete(handle)
    await lifecycles.run()

    assert (await lifecycles.operation(updated)).status == "Canceled"
    assert (await lifecycles.operation(deleted)).status == "Succeeded"
    assert "working" not in (await lifecycles.path(handle))[3:]
    assert await violations(lifecycles.db) == []


async def test_delete_during_a_step_takes_over_when_it_is_recorded(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()

    async def meanwhile():
        await lifecycles.delete(handle)
        return Done(scratch={"made": True})

    fake_lifecycle.result = lambda ctx: meanwhile() if ctx.machine.state == "working" else Done()
    assert await lifecycles.step(handle) is Turn.MOVED

    assert await lifecycles.state(handle) == "ending"
    assert (await lifecycles.resource(handle))["provisioning_state"] == "Deleting"
    scratch = await lifecycles.db.fetchval("select scratch from machine where uid = $1", handle.uid)
    assert scratch["made"] is True


async def test_a_signal_to_nobody_is_an_error_of_ours(lifecycles, fake_lifecycle):
    with pytest.raises(Internal):
        async with lifecycles.db.transaction() as tx:
            await send(
                tx, lifecycles.lifecycles, uid=uuid4(), name="x", operation_id=None, payload={}
            )


async def test_the_lease_is_measured_by_the_database(lifecycles, fake_lifecycle):
    handle = await lifecycles.put_server()
    one, two = lifecycles.runner(), lifecycles.runner()
    outcomes = []

    async def steal():
        outcomes.append(await two.turn(handle.uid))
        await lifecycles.advance(lifecycles.settings.lease)
        fake_lifecycle.result = lambda ctx: Done()
        outcomes.append(await two.turn(handle.uid))
        return Done()

    fake_lifecycle.result = lambda ctx: steal()
    outcomes.append(await one.turn(handle.uid))

    assert outcomes == [Turn.NOTHING, Turn.MOVED, Turn.LOST]
    assert await lifecycles.path(handle) == ["working", "more"]


async def test_the_database_may_hang_up_at_any_moment(lifecycles, fake_lifecycle, database_url):
    """Sessions are ended under load; every accepted request still comes to its end."""

    async def work():
        await asyncio.sleep(0.02)
        return Done()

    fake_lifecycle.result = lambda ctx: work()
    lifecycles.settings = replace(
        lifecycles.settings, lease=timedelta(seconds=0.6), step_limit=timedelta(seconds=0.4)
    )
    handle = [await lifecycles.put_server() for _ in range(20)]
    killer = await asyncpg.connect(database_url)
    pool = await open_database(lifecycles.settings, application="muster-victim")
    lifecycles.db, patient = pool, lifecycles.db
    async with dispatched(lifecycles, count=2):
        for _ in range(10):
            await killer.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name in"
                " ('muster-victim', 'muster-wake') and datname = current_database()"
            )
            await asyncio.sleep(0.05)
        lifecycles.db = patient
        assert {(await ended(lifecycles, each)).status for each in handle} == {"Succeeded"}
        lifecycles.db = pool
    await killer.close()
    await pool.close()

    assert await violations(patient, [each.operation_id for each in handle]) == []
