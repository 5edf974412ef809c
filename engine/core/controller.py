"""Advances job executions: next step, its targets, which of them start now, and how everything ends.

A turn applies cancellations, lets time pass, moves runs on, reserves what the policy picks, and hears
what became of tasks; where there is both to do, by one statement. All of it is in the database before
anybody acts on it; memory only says where to look. Whoever wakes us (a start, a stop, a result) may be
lost: every second we look anyway.
"""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec

from engine.context.core_context import CoreContext
from engine.core.runs import updates
from engine.core.runs.execution_store import ExecutionStore, Q, ReservationBatch
from engine.core.runs.planner import Planner, read
from engine.core.runs.run_lifecycle import RunLifecycle
from engine.core.service import Service
from engine.db.wakeups import RESULTS, STARTS
from engine.scheduling.limits import see_limits
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import RunningTask, StepRun, WaitingTarget, read_completion
from muster.core.db import Row
from muster.core.errors import Fault
from muster.core.failpoints import reach

LOOK = timedelta(seconds=1)
AT_ONCE = 500  # tasks of one reservation
MOST_LATE = 2000  # targets that are timed out by one statement
TOGETHER = 20  # reservations before anything else is looked at


class Controller(Service):
    name = "controller"
    channels = (STARTS, RESULTS)

    def __init__(self, means: CoreContext) -> None:
        super().__init__(means)
        self._news = means.rings.of("controller news", STARTS)
        self._told = means.rings.of("controller results", RESULTS)
        self._road = ExecutionStore(means.store, self.alive)
        self._planner = Planner(means.store, means.targets)
        self._offset = 0.0  # from our clock to the database's
        self._looked = 0.0  # when everything was last looked at
        self._lifecycle: RunLifecycle | None = None
        self._forget()

    def _forget(self) -> None:
        """What memory holds may be wrong: the next turn reads the database."""
        self._floor: RunState | None = None
        self.means.view.floor = None
        self._marks: dict[UUID, int] = {}  # the newest completion of each host that was heard
        if self._lifecycle is not None:
            self._lifecycle.end()
            self._lifecycle = None

    @property
    def pause(self) -> timedelta:
        due = self._floor.next_due if self._floor else None
        if due is None:
            return min(LOOK, self.means.heartbeat)
        left = max(0.0, due - self._now)
        return min(LOOK, self.means.heartbeat, timedelta(seconds=left))

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._forget()
            self._planner.hang_up()
            self._road.hang_up()

    async def turn(self) -> None:
        try:
            floor = self._floor or await self._load()
            assert self._lifecycle is not None
            await self._work(floor, self._lifecycle)
        except Fault:
            self._forget()  # a word that got lost may have been heard
            raise
        beat = self.means.view.beat
        mood = "draining" if beat.draining else "paused" if beat.paused else "idle"
        self.doing = f"{len(floor.runs)} runs, {len(floor.running)} tasks" if floor.runs else mood

    async def _work(self, floor: RunState, lifecycle: RunLifecycle) -> None:
        self._see_hosts(floor)
        if look := self._past_look:
            await self._look(floor, lifecycle)
        elif self._news.is_set():
            await self._see_news(floor, lifecycle)
        if look:
            self._told.set()
        await self._let_time_pass(floor, lifecycle)
        lifecycle.pending.update(await lifecycle.cancellations.signal(floor))
        pending, lifecycle.pending = lifecycle.pending, set()
        for run in pending:
            self.alive()
            await lifecycle.advance(run)
        lifecycle.documents.clear()
        await self._reserve(floor, lifecycle)
        await lifecycle.cancellations.close(floor)

    # What there is

    async def _load(self) -> RunState:
        floor = RunState(self.means.capacity)
        lifecycle = RunLifecycle(self.means, self._road, self._planner, floor, self._rung.set)
        marks = await self._road.rows(Q.completion_marks)
        self._marks = {row["host_id"]: row["number"] for row in marks}
        await self._look(floor, lifecycle)
        self._lifecycle = lifecycle
        self._floor = self.means.view.floor = floor
        return floor

    @property
    def _past_look(self) -> bool:
        return self.means.clock.monotonic() - self._looked >= LOOK.total_seconds()

    @property
    def _now(self) -> float:
        """By the database's clock."""
        return self.means.clock.monotonic() + self._offset

    async def _look(self, floor: RunState, lifecycle: RunLifecycle) -> None:
        """What is new, and what its limits are."""
        self._looked = self.means.clock.monotonic()
        (seen,) = await self._road.rows(Q.look)
        self._offset = seen["now"] - self.means.clock.monotonic()
        see_limits(floor, msgspec.json.decode(seen["limits"]))
        floor.tree.pause_jobs(seen["paused"])
        if self.means.view.beat.draining:
            await self._road.rows(Q.cancel_everything)
        await self._see_news(floor, lifecycle)
        lifecycle.pending.update(floor.runs.values())

    def _see_hosts(self, floor: RunState) -> None:
        view = self.means.view
        live = {id: host.slots for id, host in view.hosts.items() if view.gets_tasks(id)}
        if live != {id: node.slots for id, node in floor.tree.hosts.items()}:
            floor.policy.wake(floor.tree.see_hosts(live, floor.used_slots()))

    async def _see_news(self, floor: RunState, lifecycle: RunLifecycle) -> None:
        """What somebody started or wants to stop."""
        self._news.clear()
        (seen,) = await self._road.rows(Q.news, list(floor.runs))
        for run in updates.runs(seen["runs"]):
            floor.runs[run.id] = run
            lifecycle.pending.add(run)
        lifecycle.cancellations.see(updates.orders(seen["orders"]))
        if seen["document"] is not None:
            lifecycle.documents[seen["group_name"]] = read(seen["document"])

    # What became of what

    async def _hear(self, floor: RunState, lifecycle: RunLifecycle, told: list[Row]) -> bool:
        """Whether anything is as it was not."""
        if told:
            await reach("core.heard")
        for row in told:
            self._marks[row["host_id"]] = row["number"]
            floor.inbox += read_completion(row["report"])
        inbox, floor.inbox = floor.inbox, []
        now = self._now
        for one in inbox:
            step = floor.apply_result(one, now)
            if step is not None and step.finished:
                lifecycle.pending.add(step.run)
        return bool(inbox)

    async def _let_time_pass(self, floor: RunState, lifecycle: RunLifecycle) -> None:
        late: dict[StepRun, list[WaitingTarget]] = {}
        for step, target in floor.due(self._now):
            late.setdefault(step, []).append(target)
        for step, targets in late.items():
            for first in range(0, len(targets), MOST_LATE):
                await self._time_out(floor, step, targets[first : first + MOST_LATE])
            lifecycle.pending.add(step.run)

    async def _time_out(self, floor: RunState, step: StepRun, targets: list[WaitingTarget]) -> None:
        self.alive()
        ordinals = [target.ordinal for target in targets]
        rows = await self._road.rows(Q.time_out, step.run.id, step.plan.step_id, ordinals)
        over = {row[0] for row in rows}
        for target in targets:
            if target.ordinal in over:
                floor.expire(step, target.ordinal)
            else:
                floor.postpone(step, target, self._now + LOOK.total_seconds())

    # What starts now

    async def _reserve(self, floor: RunState, lifecycle: RunLifecycle) -> None:
        """And hear, until there is nothing to reserve and nobody has told anything."""
        for _ in range(TOGETHER):
            planned = await lifecycle.load_next()
            batch = ReservationBatch()
            if self.means.view.open:
                self._pick(floor, batch)
                if planned is None:
                    self._prefetch(floor, batch)
            if planned is None and not batch.hosts and not self._told.is_set():
                return
            self.alive()
            if planned is not None:
                await reach("core.before_reserve")
                await lifecycle.write(planned, batch)
                await reach("core.reserved")
            elif await self._exchange(floor, lifecycle, batch):
                break
        self._rung.set()  # there may be more, and others have something to say

    async def _exchange(
        self, floor: RunState, lifecycle: RunLifecycle, batch: ReservationBatch
    ) -> bool:
        """Whether anything was heard."""
        self._told.clear()  # who tells something from now on may not be read by this statement
        if not batch.hosts:
            return await self._hear(floor, lifecycle, await self._road.completions(self._marks))
        await reach("core.before_reserve")
        told = await self._road.reserve(batch, self._marks)
        await reach("core.reserved")
        return await self._hear(floor, lifecycle, told)

    def _pick(self, floor: RunState, batch: ReservationBatch) -> None:
        while len(batch.hosts) < AT_ONCE and (found := floor.pick()) is not None:
            step, target, host = found
            self._take(floor, batch, RunningTask(step, target, host))

    def _prefetch(self, floor: RunState, batch: ReservationBatch) -> None:
        """So that a host has the next task of a slot before the result of the last one is known here."""
        for running in floor.prefetch(AT_ONCE - len(batch.hosts)):
            self._take(floor, batch, running)

    def _take(self, floor: RunState, batch: ReservationBatch, running: RunningTask) -> None:
        running.invocation = batch.add(running)
        floor.reserved(running, self._now)
