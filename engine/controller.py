"""Advances job executions: next step, its targets, which of them start now, and how everything ends.

A turn hears what became of tasks, applies cancellations, lets time pass, moves runs on, and reserves
what the policy picks. All of it is in the database before anybody acts on it; memory only says where
to look. Whoever wakes us (a start, a stop, a result) may be lost: every second we look anyway.
"""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from engine.ends import FINAL, Disagreement
from engine.floor import OVER, Floor, Plan, Reached, Run, StepRun
from engine.limits import see_limits
from engine.orders import Orders
from engine.part import Means, Part
from engine.planner import Planner, reason_of
from engine.road import Batch, Q, Road
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.failpoints import reach

log = telemetry.get(__name__)

LOOK = timedelta(seconds=1)
AT_ONCE = 500  # tasks of one reservation
REST = 5.0  # seconds for a run that broke us, before it is tried again
STARTS, RESULTS = "muster_execution", "muster_result"


class Controller(Part):
    name = "controller"
    channels = (STARTS, RESULTS)

    def __init__(self, means: Means) -> None:
        super().__init__(means)
        self._news = means.rings.of("controller news", STARTS)
        self._road = Road(means.store, self.alive)
        self._planner = Planner(means.store, means.targets)
        self._offset = 0.0  # from our clock to the database's
        self._looked = 0.0  # when everything was last looked at
        self._planning: dict[asyncio.Task[None], StepRun] = {}
        self._forget()

    def _forget(self) -> None:
        """What memory holds may be wrong: the next turn reads the database."""
        self._floor: Floor | None = None
        self.means.view.floor = None
        self._orders = Orders(self._road, self._break_off)
        self._stirred: set[Run] = set()  # those that may have to move on
        self._marks: dict[UUID, int] = {}  # the newest completion of each host that was heard
        for task in self._planning:
            task.cancel()
        self._planning.clear()

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
            self._road.hang_up()

    async def turn(self) -> None:
        try:
            floor = self._floor or await self._load()
            await self._work(floor)
        except Fault:
            self._forget()  # a word that got lost may have been heard
            raise
        beat = self.means.view.beat
        mood = "draining" if beat.draining else "paused" if beat.paused else "idle"
        self.doing = f"{len(floor.runs)} runs, {len(floor.running)} tasks" if floor.runs else mood

    async def _work(self, floor: Floor) -> None:
        if self._past_look:
            await self._look(floor)
        elif self._news.is_set():
            await self._see_news(floor)
        self._see_hosts(floor)
        await self._hear(floor)
        await self._let_time_pass(floor)
        self._stirred |= set(await self._orders.signal(floor))
        stirred, self._stirred = self._stirred, set()
        for run in stirred:
            await self._advance(floor, run)
        if self.means.view.open:
            await self._reserve(floor)
        await self._orders.close(floor)

    # What there is

    async def _load(self) -> Floor:
        floor = Floor(self.means.capacity)
        marks = await self._road.rows(Q.completion_marks)
        self._marks = {row["host_id"]: row["number"] for row in marks}
        await self._look(floor)
        self._floor = self.means.view.floor = floor
        return floor

    @property
    def _past_look(self) -> bool:
        return self.means.clock.monotonic() - self._looked >= LOOK.total_seconds()

    @property
    def _now(self) -> float:
        """By the database's clock."""
        return self.means.clock.monotonic() + self._offset

    async def _look(self, floor: Floor) -> None:
        """What is new, and what its limits are."""
        clock, view = self.means.clock, self.means.view
        self._looked = clock.monotonic()
        self._offset = await self._road.time() - clock.monotonic()
        see_limits(floor, await self._road.rows(Q.limits))
        paused = await self._road.rows(Q.paused_jobs)
        floor.policy.close({row["job_id"] for row in paused})
        if view.beat.draining:
            await self._road.rows(Q.cancel_everything)
        await self._see_news(floor)
        self._stirred |= set(floor.runs.values())

    def _see_hosts(self, floor: Floor) -> None:
        view = self.means.view
        live = {id: host.slots for id, host in view.hosts.items() if view.gets_tasks(id)}
        if live != {id: node.slots for id, node in floor.tree.hosts.items()}:
            busy = Counter(running.host for running in floor.running.values())
            floor.policy.wake(floor.tree.see_hosts(live, busy))

    async def _see_news(self, floor: Floor) -> None:
        """What somebody started or wants to stop."""
        self._news.clear()
        for row in await self._road.rows(Q.live_runs, list(floor.runs)):
            run = _run(row)
            floor.runs[run.id] = run
            self._stirred.add(run)
        await self._orders.look()

    # What became of what

    async def _hear(self, floor: Floor) -> None:
        hosts = list(self._marks)
        told = await self._road.rows(
            Q.read_completions, hosts, [self._marks[host] for host in hosts]
        )
        if told:
            await reach("core.heard")
        for row in told:
            self._marks[row["host_id"]] = row["number"]
            floor.inbox += msgspec.json.decode(row["report"])
        inbox, floor.inbox = floor.inbox, []
        for one in inbox:
            step = floor.heard(one)
            if step is not None and step.over:
                self._stirred.add(step.run)

    async def _let_time_pass(self, floor: Floor) -> None:
        late: dict[StepRun, list[int]] = {}
        for step, target in floor.due(self._now):
            late.setdefault(step, []).append(target.ordinal)
        for step, ordinals in late.items():
            run = step.run
            rows = await self._road.rows(Q.time_out, run.id, step.plan.step_id, ordinals)
            over = {row[0] for row in rows}
            for ordinal in ordinals:
                if ordinal in over:
                    floor.ended(step, ordinal, None)
                else:  # by the database's reckoning it has some time left
                    floor.ready(step, ordinal)
            self._stirred.add(run)

    # From step to step

    async def _advance(self, floor: Floor, run: Run) -> None:
        """As far as it goes now. One that breaks us stays as it is, and the others go on."""
        self.alive()
        if run.rests_until > self.means.clock.monotonic():
            return
        try:
            while await self._move(floor, run):
                pass
        except (Fault, Disagreement):
            raise
        except Exception:
            log.exception("a run can't be moved on", run=run.id)
            run.rests_until = self.means.clock.monotonic() + REST

    async def _move(self, floor: Floor, run: Run) -> bool:
        """Whether anything changed."""
        if not run.begun:
            return await self._begin(floor, run)
        step = run.step
        if step is None:
            return await self._reach(floor, run)
        if step in self._planning.values() or not (
            step.over or (step.canceled and not step.planned)
        ):
            return False
        return await self._end_step(floor, step)

    async def _begin(self, floor: Floor, run: Run) -> bool:
        if not (self.means.view.open or run.canceled):
            return False
        if run.queued and any(
            other.job_id == run.job_id for other in floor.runs.values() if other is not run
        ):
            return False
        match await self._road.value(Q.begin_run, run.id):
            case "Begun":
                run.begun = True
            case "Queued":
                run.queued = True
                return False
            case _:
                floor.forget(run)
                self._wake_queued(floor, run)
                return False
        return True

    async def _reach(self, floor: Floor, run: Run) -> bool:
        """The next step, or the end."""
        plan = None if run.canceled else run.next()
        reached = next((seen for seen in run.reached.values() if seen.lifecycle not in OVER), None)
        if plan is None and reached is not None:
            plan = next(each for each in run.steps if each.step_id == reached.step_id)
        if plan is None:
            await reach("core.before_run_end")
            if await self._road.value(Q.end_run, run.id) is None:
                raise Disagreement(f"run {run.id} has steps that live")
            floor.forget(run)
            self._wake_queued(floor, run)
            return False
        seen = run.reached.get(plan.step_id)
        if seen is None:
            await self._road.rows(Q.begin_step, run.id, plan.step_id)
            seen = run.reached[plan.step_id] = Reached(plan.step_id, "Created")
        step = run.step = StepRun(run, plan)
        step.canceled = run.canceled or seen.cancel_requested
        if seen.snapshot_id is not None:
            await self._load_targets(floor, step)
        elif not step.canceled:
            self._plan(floor, step)
        return True

    def _plan(self, floor: Floor, step: StepRun) -> None:
        """Beside everything else: servers may take their time to answer."""
        task = asyncio.create_task(self._planned(floor, step))
        self._planning[task] = step
        task.add_done_callback(self._planning_over)

    def _break_off(self, step: StepRun) -> None:
        for task, planned in self._planning.items():
            if planned is step:
                task.cancel()

    def _planning_over(self, task: asyncio.Task[None]) -> None:
        step = self._planning.pop(task, None)
        if step is not None:
            self._stirred.add(step.run)
        if step is not None and not task.cancelled() and task.exception() is not None:
            log.error("a step could not be planned", exc_info=task.exception())
            step.run.step = None  # it is reached once more
            step.run.rests_until = self.means.clock.monotonic() + REST
        self._rung.set()

    async def _planned(self, floor: Floor, step: StepRun) -> None:
        run, plan = step.run, step.plan
        while True:
            try:
                await self._planner.plan(run, plan)
                await self._load_targets(floor, step)
                return
            except FINAL:
                raise
            except Fault as fault:
                if fault.code == "ControlDatabaseUnavailable":
                    await self.means.clock.sleep(LOOK)
                    continue
                reason = reason_of(fault)
                log.info("a step has no targets", run=run.id, step=plan.step_id, why=fault.message)
                await self._road.value(Q.end_step, run.id, plan.step_id, reason, fault.message)
                self._step_over(step, "Failed")
                return

    async def _load_targets(self, floor: Floor, step: StepRun) -> None:
        run = step.run
        rows = await self._road.rows(
            Q.live_targets, run.day, run.id, step.plan.step_id, limit=120.0
        )
        for row in rows:
            floor.load(step, dict(row))
        step.planned = True
        self._orders.reached(step)

    async def _end_step(self, floor: Floor, step: StepRun) -> bool:
        run = step.run
        await reach("core.before_step_end")
        ended = await self._road.value(Q.end_step, run.id, step.plan.step_id, None, None)
        await reach("core.step_ended")
        if ended is not None:
            self._step_over(step, ended)
        elif step.planned:
            raise Disagreement(f"step {step.plan.step_id} of run {run.id} has targets that live")
        else:  # they were planned while it was cancelled
            await self._load_targets(floor, step)
        return True

    def _step_over(self, step: StepRun, lifecycle: str) -> None:
        self._orders.over(step)
        self._drop(step)
        run, id = step.run, step.plan.step_id
        run.reached[id] = Reached(id, lifecycle)
        run.step = None

    def _drop(self, step: StepRun) -> None:
        if self._floor is not None:
            self._floor.policy.drop(step.queues.values())

    def _wake_queued(self, floor: Floor, run: Run) -> None:
        for other in floor.runs.values():
            if other.job_id == run.job_id:
                other.queued = False
                self._stirred.add(other)
                self._rung.set()

    # What starts now

    async def _reserve(self, floor: Floor) -> None:
        while True:
            batch = Batch()
            while len(batch.hosts) < AT_ONCE and (found := floor.pick()) is not None:
                step, target, host = found
                if target.deadline is None:
                    target.deadline = self._now + step.plan.timeout_seconds
                batch.add(step, target, host)
            if not batch.hosts:
                return
            for (step, target), host, invocation in zip(
                batch.taken, batch.hosts, batch.invocations, strict=True
            ):
                floor.reserved(step, target, host, invocation)
            await reach("core.before_reserve")
            await self._road.reserve(batch)
            await reach("core.reserved")


def _run(row: Any) -> Run:
    reached = msgspec.json.decode(row["reached"], type=tuple[Reached, ...])
    return Run(
        id=row["job_execution_id"],
        job_id=row["job_id"],
        job_name=row["job_name"],
        version=row["job_version"],
        day=row["run_day"],
        steps=msgspec.json.decode(row["steps"], type=tuple[Plan, ...]),
        reached={each.step_id: each for each in reached},
        begun=row["lifecycle"] != "Created",
        canceled=row["cancel_requested_at"] is not None,
    )
