import asyncio
from datetime import timedelta

import pytest

from engine.process.exit_codes import Disagreement, Fenced
from engine.core.supervisor import CORE, HEALTHY, JobHosting, RestartBackoff
from engine.db.membership import InstanceState
from engine.context.cluster_state import ClusterState
from tests.support.fake_clock import FakeClock

PATIENCE = timedelta(seconds=30)


class Scripted:
    """A part that does as its script says, one entry per life; afterwards it just breathes."""

    def __init__(self, stage: "Stage", name: str) -> None:
        self.stage, self.name = stage, name
        self.last_heartbeat = stage.clock.monotonic()

    async def run(self, stop: asyncio.Event) -> None:
        act = self.stage.next_act(self.name)
        if isinstance(act, Exception):
            raise act
        if act == "hang":
            await asyncio.Event().wait()
        if act == "end":
            return
        while not stop.is_set():
            self.last_heartbeat = self.stage.clock.monotonic()
            self.stage.breathed(self.name, stop)
            await self.stage.clock.sleep_or(stop, timedelta(seconds=1))


class Stage:
    """Runs JobHosting until every part has come to the end of its script and breathed."""

    def __init__(self, **scripts: list) -> None:
        self.clock = FakeClock()
        self.scripts = scripts
        self.lives = dict.fromkeys(scripts, 0)
        self.loads = 0
        self.well: set[str] = set()
        self.hosting = JobHosting(
            load=self.load, make=self.make, patience=PATIENCE, clock=self.clock
        )

    async def load(self, stop: asyncio.Event) -> ClusterState:
        self.loads += 1
        return ClusterState(InstanceState(False, False, 3, 0))

    def make(self, cluster_state: ClusterState):
        self.well.clear()
        return {name: lambda name=name: Scripted(self, name) for name in self.scripts}

    def next_act(self, name: str):
        self.lives[name] += 1
        return self.scripts[name].pop(0) if self.scripts[name] else "breathe"

    def breathed(self, name: str, stop: asyncio.Event) -> None:
        self.well.add(name)
        if self.well == set(self.scripts) and not any(self.scripts.values()):
            stop.set()

    async def play(self) -> "Stage":
        async with asyncio.timeout(5):
            await self.hosting.run(asyncio.Event())
        return self


async def test_healthy_parts_live_once_until_they_are_stopped():
    stage = await Stage(scheduler=[], controller=[]).play()

    assert stage.lives == {"scheduler": 1, "controller": 1}
    assert stage.hosting.restarts == {} and stage.hosting.services == {}


async def test_a_crashed_part_is_started_anew_and_the_others_go_on():
    stage = await Stage(
        scheduler=[RuntimeError("broken"), RuntimeError("again")], controller=[]
    ).play()

    assert stage.lives == {"scheduler": 3, "controller": 1}
    assert stage.hosting.restarts == {"scheduler": 2} and stage.loads == 1


async def test_a_part_that_hangs_is_started_anew_after_its_patience():
    stage = await Stage(communicator=["hang"], heart=[]).play()

    assert stage.lives == {"communicator": 2, "heart": 1}
    assert stage.hosting.restarts == {"communicator": 1}
    assert stage.clock.monotonic() > PATIENCE.total_seconds()


async def test_a_part_that_ends_by_itself_is_started_anew():
    stage = await Stage(maintainer=["end"]).play()

    assert stage.hosting.restarts == {"maintainer": 1}


async def test_a_part_that_cancels_itself_is_started_anew():
    class Cancelled(Scripted):
        async def run(self, stop):
            if self.stage.lives[self.name] == 0:
                self.stage.next_act(self.name)
                raise asyncio.CancelledError
            await super().run(stop)

    stage = Stage(maintainer=[])
    stage.hosting.make = lambda cluster_state: {
        "maintainer": lambda: Cancelled(stage, "maintainer")
    }

    await stage.play()

    assert stage.hosting.restarts == {"maintainer": 1}


async def test_a_disagreement_stops_everything_and_starts_anew_from_the_database():
    stage = await Stage(
        agreement=[Disagreement("a host is not known")], controller=[], heart=[]
    ).play()

    assert stage.loads == 2
    assert stage.lives == {"agreement": 2, "controller": 2, "heart": 2}
    assert stage.hosting.restarts == {CORE: 1}


async def test_a_stale_epoch_ends_the_core_for_good_whatever_else_is_wrong():
    stage = Stage(
        heart=[Fenced("epoch 1 is not in charge")], agreement=[Disagreement("and this")],
        controller=["hang"],
    )  # fmt: skip

    with pytest.raises(Fenced):
        await stage.play()

    assert stage.loads == 1


def test_pauses_grow_with_each_end_and_begin_again_after_a_healthy_life():
    clock = FakeClock()
    pauses = RestartBackoff(clock)

    quick = []
    for _ in range(10):
        pauses.begin()
        quick.append(pauses.next().total_seconds())
    pauses.begin()
    clock.advance(timedelta(seconds=HEALTHY + 1))

    assert quick[:4] == [0.2, 0.4, 0.8, 1.6] and quick[-1] == 30.0
    assert pauses.next().total_seconds() == 0.2
