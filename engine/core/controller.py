"""Advances runs: applies cancellations and deadlines, reserves the tasks that the policy picks, applies results.

Reservations and new completions go through one statement. Every decision is in the database before it takes
effect; memory is only a copy. A wake-up (a start, a cancellation, a result) may be lost, so the controller
also polls.
"""

import asyncio
from datetime import timedelta
from uuid import UUID

import msgspec

from engine.context.core_context import CoreContext
from engine.core.runs import updates
from engine.core.runs.execution_store import ExecutionStore, Q, ReservationBatch
from engine.core.runs.planner import Planner, read_document
from engine.core.runs.run_lifecycle import RunLifecycle
from engine.core.service import Service
from engine.db.wakeups import RESULTS, STARTS
from engine.scheduling.limits import apply_limits
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import RunningTask, StepRun, WaitingTarget, read_items
from muster.core.db import Row
from muster.core.errors import Fault
from muster.core.failpoints import reach

POLL_INTERVAL = timedelta(seconds=1)
MAX_BATCH = 500  # tasks of one reservation
MAX_TIMEOUTS = 2000  # targets that one statement times out
MAX_RESERVATIONS = 20  # in one round


class Controller(Service):
    name = "controller"
    channels = (STARTS, RESULTS)

    def __init__(self, context: CoreContext) -> None:
        super().__init__(context)
        self._has_updates = context.wakeups.of("controller news", STARTS)
        self._has_results = context.wakeups.of("controller results", RESULTS)
        self._executions = ExecutionStore(context.store, self.heartbeat)
        self._planner = Planner(context.store, context.targets)
        self._clock_offset = 0.0  # from the monotonic clock to the database's clock
        self._polled_at = 0.0
        self._lifecycle: RunLifecycle | None = None
        self._reset()

    def _reset(self) -> None:
        """Memory may differ from the database: the next round loads it again."""
        self._run_state: RunState | None = None
        self.context.cluster_state.run_state = None
        self._completion_marks: dict[UUID, int] = {}  # by host: its newest applied completion
        if self._lifecycle is not None:
            self._lifecycle.end()
            self._lifecycle = None

    @property
    def pause(self) -> timedelta:
        pause = min(POLL_INTERVAL, self.context.heartbeat)
        due = self._run_state.next_due if self._run_state else None
        return pause if due is None else min(pause, timedelta(seconds=max(0.0, due - self._now)))

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await super().run(stop)
        finally:
            self._reset()
            self._planner.disconnect()
            self._executions.disconnect()

    async def run_once(self) -> None:
        try:
            run_state = self._run_state or await self._load()
            assert self._lifecycle is not None
            await self._advance(run_state, self._lifecycle)
        except Fault:
            self._reset()  # the database may have applied a statement whose reply was lost
            raise
        beat = self.context.cluster_state.beat
        idle = "draining" if beat.draining else "paused" if beat.paused else "idle"
        runs, tasks = len(run_state.runs), len(run_state.running)
        self.status = f"{runs} runs, {tasks} tasks" if runs else idle

    async def _advance(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        self._apply_hosts(run_state)
        if self._is_poll_due:
            await self._poll(run_state, lifecycle)
            self._has_results.set()
        elif self._has_updates.is_set():
            await self._read_updates(run_state, lifecycle)
        await self._apply_deadlines(run_state, lifecycle)
        lifecycle.late_listing.start()
        lifecycle.pending.update(await lifecycle.cancellations.signal(run_state))
        pending, lifecycle.pending = lifecycle.pending, set()
        for run in pending:
            self.heartbeat()
            await lifecycle.advance(run)
        lifecycle.documents.clear()
        await self._reserve(run_state, lifecycle)
        await lifecycle.cancellations.close(run_state)

    # Reading

    async def _load(self) -> RunState:
        run_state = RunState(self.context.capacity)
        lifecycle = RunLifecycle(
            self.context,
            self._executions,
            self._planner,
            run_state,
            self._wakeup.set,
            lambda: self._now,
        )
        marks = await self._executions.rows(Q.completion_marks)
        self._completion_marks = {row["host_id"]: row["number"] for row in marks}
        await self._poll(run_state, lifecycle)
        self._lifecycle = lifecycle
        self._run_state = self.context.cluster_state.run_state = run_state
        return run_state

    @property
    def _is_poll_due(self) -> bool:
        return self.context.clock.monotonic() - self._polled_at >= POLL_INTERVAL.total_seconds()

    @property
    def _now(self) -> float:
        """By the database's clock."""
        return self.context.clock.monotonic() + self._clock_offset

    async def _poll(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """Reads limits, paused jobs and updates; every run may move."""
        self._polled_at = self.context.clock.monotonic()
        (row,) = await self._executions.rows(Q.look)
        self._clock_offset = row["now"] - self.context.clock.monotonic()
        apply_limits(run_state, msgspec.json.decode(row["limits"]))
        run_state.tree.pause_jobs(row["paused"])
        run_state.same_error_limit = row["same_error_limit"]
        if self.context.cluster_state.beat.draining:
            await self._executions.rows(Q.cancel_everything)
        await self._read_updates(run_state, lifecycle)
        lifecycle.pending.update(run_state.runs.values())

    def _apply_hosts(self, run_state: RunState) -> None:
        cluster_state = self.context.cluster_state
        slots = {
            id: host.slots
            for id, host in cluster_state.hosts.items()
            if cluster_state.gets_tasks(id)
        }
        if slots != {id: node.slots for id, node in run_state.tree.hosts.items()}:
            run_state.policy.wake(run_state.tree.set_hosts(slots, run_state.used_slots()))

    async def _read_updates(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """Reads new runs, and what operators want of the known ones."""
        self._has_updates.clear()
        (row,) = await self._executions.rows(Q.news, list(run_state.runs))
        outdated = lifecycle.outdated_runs(updates.retries(row["retries"]))
        if outdated:
            await reach("core.before_retry")
            for run in outdated:
                lifecycle.forget(run)
            (row,) = await self._executions.rows(Q.news, list(run_state.runs))
        for run in updates.runs(row["runs"]):
            run_state.runs[run.id] = run
            lifecycle.pending.add(run)
        lifecycle.cancellations.add(updates.cancellations(row["orders"]))
        lifecycle.pending.update(lifecycle.rollouts.update(updates.rollouts(row["rollouts"])))
        if row["document"] is not None:
            lifecycle.documents[row["group_name"]] = read_document(row["document"])
        if outdated:
            await reach("core.retried")

    # Results and deadlines

    async def _apply_results(
        self, run_state: RunState, lifecycle: RunLifecycle, rows: list[Row]
    ) -> bool:
        """Returns True when there was any result."""
        if rows:
            await reach("core.heard")
        for row in rows:
            self._completion_marks[row["host_id"]] = row["number"]
            run_state.inbox += read_items(row["items"])
        inbox, run_state.inbox = run_state.inbox, []
        now = self._now
        for completion in inbox:
            if completion.kind == "result" and (
                task := run_state.running.get(completion.invocation_id)
            ):
                self.context.metrics.attempt_ended(task.step.run.job_name, completion.lifecycle)
        steps = {run_state.apply_result(completion, now) for completion in inbox}
        for step in steps - {None}:
            if step is not None and lifecycle.may_move(step.run):
                lifecycle.pending.add(step.run)
        return bool(inbox)

    async def _apply_deadlines(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        expired: dict[StepRun, list[WaitingTarget]] = {}
        for step, target in run_state.due(self._now):
            expired.setdefault(step, []).append(target)
        for step, targets in expired.items():
            for first in range(0, len(targets), MAX_TIMEOUTS):
                await self._time_out(run_state, step, targets[first : first + MAX_TIMEOUTS])
            lifecycle.pending.add(step.run)

    async def _time_out(
        self, run_state: RunState, step: StepRun, targets: list[WaitingTarget]
    ) -> None:
        self.heartbeat()
        ordinals = [target.ordinal for target in targets]
        rows = await self._executions.rows(Q.time_out, step.run.id, step.plan.step_id, ordinals)
        ended = {row[0] for row in rows}
        for target in targets:
            if target.ordinal in ended:
                run_state.expire(step, target.ordinal, self._now)
            else:
                run_state.postpone(step, target, self._now + POLL_INTERVAL.total_seconds())

    # Reservations

    async def _reserve(self, run_state: RunState, lifecycle: RunLifecycle) -> None:
        """Reserves tasks and applies results until there are none of both."""
        for _ in range(MAX_RESERVATIONS):
            step = await lifecycle.load_next()
            batch = ReservationBatch()
            if self.context.cluster_state.open:
                self._pick(run_state, batch)
                if step is None:
                    self._prefetch(run_state, batch)
            if step is None and not batch.hosts and not self._has_results.is_set():
                return
            self.heartbeat()
            if step is not None:
                await reach("core.before_reserve")
                await lifecycle.write(step, batch)
                await reach("core.reserved")
            elif await self._exchange(run_state, lifecycle, batch):
                break
        self._wakeup.set()  # there may be more; updates and finished steps come first

    async def _exchange(
        self, run_state: RunState, lifecycle: RunLifecycle, batch: ReservationBatch
    ) -> bool:
        """Writes the reservations and reads new results; returns True when there was any result."""
        self._has_results.clear()  # before the statement, which may miss a result that is written now
        if not batch.hosts:
            rows = await self._executions.completions(self._completion_marks)
        else:
            await reach("core.before_reserve")
            rows = await self._executions.reserve(batch, self._completion_marks)
            await reach("core.reserved")
        return await self._apply_results(run_state, lifecycle, rows)

    def _pick(self, run_state: RunState, batch: ReservationBatch) -> None:
        while len(batch.hosts) < MAX_BATCH and (picked := run_state.pick()) is not None:
            step, target, host = picked
            self._add(run_state, batch, RunningTask(step, target, host))

    def _prefetch(self, run_state: RunState, batch: ReservationBatch) -> None:
        """Sends a host the next tasks of a slot before the result of the current one is known here."""
        for task in run_state.prefetch(MAX_BATCH - len(batch.hosts)):
            self._add(run_state, batch, task)

    def _add(self, run_state: RunState, batch: ReservationBatch, task: RunningTask) -> None:
        task.invocation = batch.add(task)
        run_state.reserved(task, self._now)
