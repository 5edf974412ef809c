"""How the fault of a lot is armed inside one process, and how a world goes on under it.

with armed(lot, world) as hits:
    …
    await run(world)
    assert hits() == set(lot.states)       the states in which it struck
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from fsm.runner import Turn
from muster.core import failpoints
from muster.core.failpoints import Crash
from tests.chaos.cells import KILLS, PAUSES, WRAPPED, Lot, wrapped
from tests.support.account_fixture import AccountLifecycles
from tests.support.lifecycle_fixture import Lifecycles

Hits = Callable[[], set[str]]
STEP_LIMIT = timedelta(seconds=0.5)


def armed(
    lot: Lot, lifecycles: Lifecycles | AccountLifecycles
) -> contextlib.AbstractContextManager[Hits]:
    if lot.fault in WRAPPED:
        return _wrapped(lot, lifecycles)
    if lot.fault in PAUSES:
        return _paused(lot, lifecycles)
    return _simply(lot)


async def run(lifecycles: Lifecycles | AccountLifecycles) -> None:
    """Whenever a runner dies, another one begins."""
    for _ in range(20):
        try:
            return await lifecycles.run()
        except Crash:
            pass
    raise AssertionError("it crashes again and again")


@contextlib.contextmanager
def _simply(lot: Lot) -> Iterator[Hits]:
    points = lot.points(KILLS.get(lot.fault, "fsm.effect"))
    action = "crash times:1" if lot.fault in KILLS else "raise times:1"
    with failpoints.armed(dict.fromkeys(points, action)) as found:
        yield lambda: {p.rpartition(".")[2] for p in points if found.hits.get(p)}


@contextlib.contextmanager
def _wrapped(lot: Lot, lifecycles: Lifecycles | AccountLifecycles) -> Iterator[Hits]:
    lifecycles.lifecycles[lot.lifecycle], faulty = wrapped(lot)
    if lot.fault == "exceeds its limit":
        lifecycles.settings = replace(lifecycles.settings, step_limit=STEP_LIMIT)
    yield lambda: {state for state, once in faulty.items() if once.hits}


@contextlib.contextmanager
def _paused(lot: Lot, lifecycles: Lifecycles | AccountLifecycles) -> Iterator[Hits]:
    """The others take over meanwhile; what the sleeper writes afterwards is refused."""
    paused: set[str] = set()

    async def pause(state: str) -> None:
        if state in paused:
            return
        paused.add(state)
        await lifecycles.advance(lifecycles.settings.lease)
        uid = await lifecycles.db.fetchval("select uid from machine where lease_owner is not null")
        assert await lifecycles.runner().turn(uid) in {Turn.MOVED, Turn.RESTS}

    points = lot.points(PAUSES[lot.fault])
    actions = {p: partial(pause, s) for p, s in zip(points, lot.states, strict=True)}
    with failpoints.armed(actions):
        yield lambda: paused
