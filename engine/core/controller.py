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

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._updates = context.wakeups.of("controller news", STARTS)
        self._results = context.wakeups.of("controller results", RESULTS)
        self._executions = ExecutionStore(context.store, self.heartbeat)
        self._planner = Planner(context.store, context.targets)
        self._offset = 0.0  # from our clock to the database's
        self._looked = 0.0  # when everything was last looked at
        self._lifecycle: RunLifecycle | None = None
        self._forget()

    def _forget(self) -> None:
        """What memory holds may be wrong: the next turn reads the database."""
        self._run_state: RunState | None = None
        self.context.cluster_state.run_state = None
        self._marks: dict[UUID, int] = {}  # the newest completion of each host that was heard
        if self._lifecycle is not None:
            self._lifecycle.end()
            self._lifecycle = None

    @property
    def pause(self) -> timedelta:
        due = self._run_state.next_due if self._run_state else None
        if due is None:
            return min(LOOK, self.context.heartbeat)
        left = max(0.0, due - self._now)
        return min(LOOK, self.context.heartbeat, timedelta(seconds=left))

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._forget()
            self._planner.hang_up()
            self._executions.hang_up()

    async def run_once(self) -> None:
        try:
            run_state = self._run_state or await self._load()
            assert self._lifecycle is not None
            await self._work(run_state, self._lifecycle)
        except Fault:
            self._forget()  # a word that got lost may have been heard
            raise
        beat = self.context.cluster_state.beat
        mood = "draining" if beat.draining else "paused" if beat.paused else "idle"
        self.status = (
            f"{len(run_state.runs)} runs, {len(run_state.running)} tasks"
            if run_state.runs
            else mood
        )

    async def _work(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        self._see_hosts(run_state)
        if look := self._past_look:
            await self._look(run_state, lifecycle)
        elif self._updates.is_set():
            await self._read_updates(run_state, lifecycle)
        if look:
            self._results.set()
        await self._let_time_pass(run_state, lifecycle)
        lifecycle.pending.update(await lifecycle.cancellations.signal(run_state))
        pending, lifecycle.pending = lifecycle.pending, set()
        for run in pending:
            self.heartbeat()
            await lifecycle.advance(run)
        lifecycle.documents.clear()
        await self._reserve(run_state, lifecycle)
        await lifecycle.cancellations.close(run_state)

    # What there is

    async def _load(self) -> RunState:
        run_state = RunState(self.context.capacity)
        lifecycle = RunLifecycle(
            self.context, self._executions, self._planner, run_state, self._wakeup.set
        )
        marks = await self._executions.rows(Q.completion_marks)
        self._marks = {row["host_id"]: row["number"] for row in marks}
        await self._look(run_state, lifecycle)
        self._lifecycle = lifecycle
        self._run_state = self.context.cluster_state.run_state = run_state
        return run_state

    @property
    def _past_look(self) -> bool:
        return self.context.clock.monotonic() - self._looked >= LOOK.total_seconds()

    @property
    def _now(self) -> float:
        """By the database's clock."""
        return self.context.clock.monotonic() + self._offset

    async def _look(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """What is new, and what its limits are."""
        self._looked = self.context.clock.monotonic()
        (seen,) = await self._executions.rows(Q.look)
        self._offset = seen["now"] - self.context.clock.monotonic()
        see_limits(run_state, msgspec.json.decode(seen["limits"]))
        run_state.tree.pause_jobs(seen["paused"])
        if self.context.cluster_state.beat.draining:
            await self._executions.rows(Q.cancel_everything)
        await self._read_updates(run_state, lifecycle)
        lifecycle.pending.update(run_state.runs.values())

    def _see_hosts(self, run_state: RunState) -> None:
        cluster_state = self.context.cluster_state
        live = {
            id: host.slots
            for id, host in cluster_state.hosts.items()
            if cluster_state.gets_tasks(id)
        }
        if live != {id: node.slots for id, node in run_state.tree.hosts.items()}:
            run_state.policy.wake(run_state.tree.see_hosts(live, run_state.used_slots()))

    async def _read_updates(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """What somebody started or wants to stop."""
        self._updates.clear()
        (seen,) = await self._executions.rows(Q.news, list(run_state.runs))
        for run in updates.runs(seen["runs"]):
            run_state.runs[run.id] = run
            lifecycle.pending.add(run)
        lifecycle.cancellations.see(updates.orders(seen["orders"]))
        if seen["document"] is not None:
            lifecycle.documents[seen["group_name"]] = read(seen["document"])

    # What became of what

    async def _hear(self, run_state: RunState, lifecycle: RunLifecycle, told: list[Row]) -> bool:
        """Whether anything is as it was not."""
        if told:
            await reach("core.heard")
        for row in told:
            self._marks[row["host_id"]] = row["number"]
            run_state.inbox += read_completion(row["report"])
        inbox, run_state.inbox = run_state.inbox, []
        now = self._now
        for one in inbox:
            step = run_state.apply_result(one, now)
            if step is not None and step.finished:
                lifecycle.pending.add(step.run)
        return bool(inbox)

    async def _let_time_pass(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        late: dict[StepRun, list[WaitingTarget]] = {}
        for step, target in run_state.due(self._now):
            late.setdefault(step, []).append(target)
        for step, targets in late.items():
            for first in range(0, len(targets), MOST_LATE):
                await self._time_out(run_state, step, targets[first : first + MOST_LATE])
            lifecycle.pending.add(step.run)

    async def _time_out(
        self, run_state: RunState, step: StepRun, targets: list[WaitingTarget]
    ) -> None:
        self.heartbeat()
        ordinals = [target.ordinal for target in targets]
        rows = await self._executions.rows(Q.time_out, step.run.id, step.plan.step_id, ordinals)
        over = {row[0] for row in rows}
        for target in targets:
            if target.ordinal in over:
                run_state.expire(step, target.ordinal)
            else:
                run_state.postpone(step, target, self._now + LOOK.total_seconds())

    # What starts now

    async def _reserve(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """And hear, until there is nothing to reserve and nobody has told anything."""
        for _ in range(TOGETHER):
            planned = await lifecycle.load_next()
            batch = ReservationBatch()
            if self.context.cluster_state.open:
                self._pick(run_state, batch)
                if planned is None:
                    self._prefetch(run_state, batch)
            if planned is None and not batch.hosts and not self._results.is_set():
                return
            self.heartbeat()
            if planned is not None:
                await reach("core.before_reserve")
                await lifecycle.write(planned, batch)
                await reach("core.reserved")
            elif await self._exchange(run_state, lifecycle, batch):
                break
        self._wakeup.set()  # there may be more, and others have something to say

    async def _exchange(
        self, run_state: RunState, lifecycle: RunLifecycle, batch: ReservationBatch
    ) -> bool:
        """Whether anything was heard."""
        self._results.clear()  # who tells something from now on may not be read by this statement
        if not batch.hosts:
            return await self._hear(
                run_state, lifecycle, await self._executions.completions(self._marks)
            )
        await reach("core.before_reserve")
        told = await self._executions.reserve(batch, self._marks)
        await reach("core.reserved")
        return await self._hear(run_state, lifecycle, told)

    def _pick(self, run_state: RunState, batch: ReservationBatch) -> None:
        while len(batch.hosts) < AT_ONCE and (found := run_state.pick()) is not None:
            step, target, host = found
            self._take(run_state, batch, RunningTask(step, target, host))

    def _prefetch(self, run_state: RunState, batch: ReservationBatch) -> None:
        """So that a host has the next task of a slot before the result of the last one is known here."""
        for running in run_state.prefetch(AT_ONCE - len(batch.hosts)):
            self._take(run_state, batch, running)

    def _take(self, run_state: RunState, batch: ReservationBatch, running: RunningTask) -> None:
        running.invocation = batch.add(running)
        run_state.reserved(running, self._now)
