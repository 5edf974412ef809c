"""Takes runs from step to step: begins them, has the targets of a step planned, and ends what is over.

A run begins together with its first step and the targets of that, and ends together with its last one.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from engine.ends import FINAL, Disagreement
from engine.floor import OVER, Floor, Plan, Reached, Run, StepRun
from engine.orders import Orders
from engine.part import Means
from engine.planner import BEGUN, Planner, reason_of
from engine.road import Q, Road
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.failpoints import reach

log = telemetry.get(__name__)

AGAIN = timedelta(seconds=1)  # before the control database is asked again
REST = 5.0  # seconds for a run that broke us, before it is tried again


class Progress:
    """Of the runs on one floor."""

    def __init__(
        self,
        means: Means,
        road: Road,
        planner: Planner,
        floor: Floor,
        stir: Callable[[Run], None],
    ) -> None:
        self._means = means
        self._road = road
        self._planner = planner
        self._floor = floor
        self._stir = stir  # it may have to move on
        self.orders = Orders(road, self._break_off)
        self._planning: dict[asyncio.Task[None], StepRun] = {}

    def end(self) -> None:
        planning, self._planning = self._planning, {}
        for task in planning:
            task.cancel()

    async def advance(self, run: Run) -> None:
        """As far as it goes now. One that breaks us stays as it is, and the others go on."""
        if run.rests_until > self._means.clock.monotonic():
            return
        try:
            while await self._move(run):
                pass
        except (Fault, Disagreement):
            raise
        except Exception:
            log.exception("a run can't be moved on", run=run.id)
            self._rest(run)

    async def _move(self, run: Run) -> bool:
        """Whether anything changed."""
        step = run.step
        if step is None:
            return await self._reach(run)
        if step in self._planning.values() or not (
            step.over or (step.canceled and not step.planned)
        ):
            return False
        return await self._end_step(step)

    async def _reach(self, run: Run) -> bool:
        """The next step, or the end."""
        if not (run.begun or self._may_begin(run)):
            return False
        plan = self._next(run)
        if plan is None:
            return await (self._end(run) if run.begun else self._begin(run))
        seen = run.reached.get(plan.step_id)
        step = run.step = StepRun(run, plan)
        step.canceled = run.canceled or (seen is not None and seen.cancel_requested)
        if seen is not None and seen.snapshot_id is not None:
            await self._load_targets(step)
        elif not step.canceled:
            self._plan(step)
        return True

    def _may_begin(self, run: Run) -> bool:
        others = (other for other in self._floor.runs.values() if other is not run)
        if run.queued and any(other.job_id == run.job_id for other in others):
            return False
        return self._means.view.open or run.canceled

    def _next(self, run: Run) -> Plan | None:
        plan = None if run.canceled else run.next()
        reached = next((seen for seen in run.reached.values() if seen.lifecycle not in OVER), None)
        if plan is None and reached is not None:
            plan = next(each for each in run.steps if each.step_id == reached.step_id)
        return plan

    # Its beginning

    async def _begin(self, run: Run) -> bool:
        """Without a step."""
        return self._has_begun(run, await self._road.value(Q.begin_run, run.id))

    def _has_begun(self, run: Run, said: str) -> bool:
        """Of one that has not, nothing goes on here."""
        run.begun = said == BEGUN
        if said == "Queued":
            run.queued, run.step = True, None
        elif not run.begun:
            self._over(run)
        return run.begun

    def _has_reached(self, step: StepRun, said: str) -> bool:
        if not self._has_begun(step.run, said):
            return False
        id = step.plan.step_id
        step.run.reached.setdefault(id, Reached(id, "Created"))
        return True

    # Its targets

    def _plan(self, step: StepRun) -> None:
        """Beside everything else: servers may take their time to answer."""
        task = asyncio.create_task(self._planned(step))
        self._planning[task] = step
        task.add_done_callback(self._planning_over)

    def _break_off(self, step: StepRun) -> None:
        for task, planned in self._planning.items():
            if planned is step:
                task.cancel()

    def _planning_over(self, task: asyncio.Task[None]) -> None:
        step = self._planning.pop(task, None)
        if step is None:
            return
        if not task.cancelled() and task.exception() is not None:
            log.error("a step could not be planned", exc_info=task.exception())
            step.run.step = None  # it is reached once more
            self._rest(step.run)
        self._stir(step.run)

    async def _planned(self, step: StepRun) -> None:
        run, plan = step.run, step.plan
        while True:
            try:
                planned = await self._planner.plan(run, plan)
            except FINAL:
                raise
            except Fault as fault:
                if fault.code == "ControlDatabaseUnavailable":
                    await self._means.clock.sleep(AGAIN)
                    continue
                await self._fail(step, fault)
                return
            if self._has_reached(step, planned.begun):
                await self._load_targets(step, planned.targets)
            return

    async def _fail(self, step: StepRun, fault: Fault) -> None:
        run, plan = step.run, step.plan
        log.info("a step has no targets", run=run.id, step=plan.step_id, why=fault.message)
        if self._has_reached(step, await self._planner.reach(run, plan)):
            why = (reason_of(fault), fault.message)
            await self._road.value(Q.end_step, run.id, plan.step_id, *why)
            self._step_over(step, "Failed")

    async def _load_targets(
        self, step: StepRun, rows: Iterable[Mapping[str, Any]] | None = None
    ) -> None:
        run = step.run
        if rows is None:
            which = (run.day, run.id, step.plan.step_id)
            rows = map(dict, await self._road.rows(Q.live_targets, *which, limit=120.0))
        for row in rows:
            self._floor.load(step, row)
        step.planned = True
        self.orders.reached(step)

    # Its end

    async def _end_step(self, step: StepRun) -> bool:
        run, id = step.run, step.plan.step_id
        if id not in run.reached and not self._has_reached(
            step, await self._planner.reach(run, step.plan)
        ):
            return False
        await reach("core.before_step_end")
        is_last = run.canceled or step.plan is run.steps[-1]
        if is_last:
            await reach("core.before_run_end")
            ((ended, run_ended),) = await self._road.rows(Q.end_last_step, run.id, id)
        else:
            ended = await self._road.value(Q.end_step, run.id, id, None, None)
        await reach("core.step_ended")
        if ended is None and step.planned:
            raise Disagreement(f"step {id} of run {run.id} has targets that live")
        if ended is None:  # they were planned while it was cancelled
            await self._load_targets(step)
            return True
        self._step_over(step, ended)
        return not is_last or self._has_ended(run, run_ended)

    async def _end(self, run: Run) -> bool:
        await reach("core.before_run_end")
        return self._has_ended(run, await self._road.value(Q.end_run, run.id))

    def _has_ended(self, run: Run, said: str | None) -> bool:
        """Nothing is left of it to move."""
        if said is None:
            raise Disagreement(f"run {run.id} has steps that live")
        self._over(run)
        return False

    def _step_over(self, step: StepRun, lifecycle: str) -> None:
        self.orders.over(step)
        self._floor.policy.drop(step.queues.values())
        run, id = step.run, step.plan.step_id
        run.reached[id] = Reached(id, lifecycle)
        run.step = None

    def _over(self, run: Run) -> None:
        self._floor.forget(run)
        for other in self._floor.runs.values():
            if other.job_id == run.job_id:
                other.queued = False
                self._stir(other)

    def _rest(self, run: Run) -> None:
        run.rests_until = self._means.clock.monotonic() + REST
