"""Takes runs from step to step: begins them, has the targets of a step planned, and ends what is over.

A run begins together with its first step, the targets of that and their first tasks, in one transaction,
unless servers must be asked for them or they are many; it ends together with its last step.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta

import asyncpg

from engine.context.core_context import CoreContext
from engine.core.runs.cancellations import Cancellations
from engine.core.runs.execution_store import ExecutionStore, Q, ReservationBatch
from engine.core.runs.planner import BEGUN, Planner, StepPlan, reason_of, refuse
from engine.model.group_document import Document
from engine.process.exit_codes import FINAL, Disagreement
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import OVER, ReachedStep, Run, StepDefinition, StepRun
from engine.targets.resolver import asks
from muster.core import telemetry
from muster.core.errors import Fault
from muster.core.failpoints import reach

log = telemetry.get(__name__)

AGAIN = timedelta(seconds=1)  # before the control database is asked again
REST = 5.0  # seconds for a run that broke us, before it is tried again


class RunLifecycle:
    """Of the runs on one floor."""

    def __init__(
        self,
        means: CoreContext,
        road: ExecutionStore,
        planner: Planner,
        floor: RunState,
        stir: Callable[[Run], None],
    ) -> None:
        self._means = means
        self._road = road
        self._planner = planner
        self._floor = floor
        self._stir = stir  # it may have to move on
        self.orders = Cancellations(road, self._break_off)
        self.known: dict[str, Document] = {}  # groups as they are right now
        self._planning: dict[asyncio.Task[None], StepRun] = {}
        self._drafts: dict[StepRun, StepPlan] = {}

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
            step = run.step
            if step is not None and not step.planned and step not in self._planning.values():
                self._begin_anew(step)
            self._rest(run)

    def _begin_anew(self, step: StepRun) -> None:
        """It is reached once more, as if nothing was known of its targets."""
        self._drafts.pop(step, None)
        self._floor.remove_waiting(step)
        step.run.step = None

    async def _move(self, run: Run) -> bool:
        """Whether anything changed."""
        step = run.step
        if step is None:
            return await self._reach(run)
        if step.canceled:
            self._drafts.pop(step, None)
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
            await self._plan(step)
        return True

    def _may_begin(self, run: Run) -> bool:
        others = (other for other in self._floor.runs.values() if other is not run)
        if run.queued and any(other.job_id == run.job_id for other in others):
            return False
        return self._means.view.open or run.canceled

    def _next(self, run: Run) -> StepDefinition | None:
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
        if said in {"Queued", "Paused"}:
            run.queued, run.step = said == "Queued", None
        elif not run.begun:
            self._over(run)
        return run.begun

    def _has_reached(self, step: StepRun, said: str) -> bool:
        if not self._has_begun(step.run, said):
            return False
        id = step.plan.step_id
        step.run.reached.setdefault(id, ReachedStep(id, "Created"))
        return True

    # Its targets

    async def _plan(self, step: StepRun) -> None:
        """Here, where they are known; or beside everything else: servers may take their time to answer."""
        run, plan = step.run, step.plan
        document = self.known.get(plan.target_group_name)
        if document is not None and not asks(document):
            with contextlib.suppress(Fault):
                draft = await self._planner.draft(run, plan, document)
                if not draft.is_large:
                    self._drafts[step] = draft
                    return
        task = asyncio.create_task(self._find(step))
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
            self._begin_anew(step)
            self._rest(step.run)
        self._stir(step.run)

    async def _find(self, step: StepRun) -> None:
        while True:
            try:
                await self._try_to_find(step)
                return
            except FINAL:
                raise
            except Fault as fault:
                if fault.code != "ControlDatabaseUnavailable":
                    await self._fail(step, fault)
                    return
            await self._means.clock.sleep(AGAIN)

    async def _try_to_find(self, step: StepRun) -> None:
        run, plan = step.run, step.plan
        refuse(plan)
        document = await self._planner.read(plan.target_group_name)
        if asks(document) and not await self._is_reached(step):
            return
        draft = await self._planner.draft(run, plan, document)
        if not draft.is_large:
            self._drafts[step] = draft
        elif await self._is_reached(step):  # whoever stops it need not wait until it is written
            await reach("core.before_plan")
            said = await self._planner.write(draft)
            await reach("core.planned")
            self._load(step, draft)
            await self._has_planned(step, *said)

    async def _is_reached(self, step: StepRun) -> bool:
        return self._has_reached(step, await self._planner.reach(step.run, step.plan))

    async def _fail(self, step: StepRun, fault: Fault) -> None:
        run, id = step.run, step.plan.step_id
        log.info("a step has no targets", run=run.id, step=id, why=fault.message)
        if await self._is_reached(step):
            await self._road.value(Q.end_step, run.id, id, reason_of(fault), fault.message)
            self._step_over(step, "Failed")

    def load_next(self) -> StepRun | None:
        """A step whose targets may be picked, and must be written with what is reserved of them."""
        for step, draft in self._drafts.items():
            if step.run.begun or self._may_begin(step.run):
                self._load(step, draft)
                return step
        return None

    async def write(self, step: StepRun, batch: ReservationBatch) -> None:
        """What it is loaded with, and these tasks, all or nothing."""
        draft = self._drafts.pop(step)
        await reach("core.before_plan")
        try:
            said = await self._road.rows(Q.plan_and_reserve, *draft.said, *batch.columns)
        except asyncpg.PostgresError:  # it was refused: the others go on
            log.exception("a step could not be planned", run=step.run.id)
            self._give_back(batch)
            self._begin_anew(step)
            self._rest(step.run)
            return
        await reach("core.planned")
        ((begun, skipped, _),) = said
        if begun != BEGUN or skipped != []:
            self._give_back(batch)
        await self._has_planned(step, begun, skipped)

    def _give_back(self, batch: ReservationBatch) -> None:
        """None of it was reserved."""
        for invocation in batch.invocations:
            self._floor.release(invocation)

    async def _has_planned(self, step: StepRun, begun: str, skipped: list[int] | None) -> None:
        """It is loaded as if all of its targets waited."""
        if not self._has_reached(step, begun) or skipped is None:
            self._floor.remove_waiting(step)
        if not step.run.begun:
            return
        if skipped is None:  # planned before, and perhaps further on
            await self._load_targets(step)
            return
        for ordinal in skipped:
            self._floor.remove(step, ordinal, None)
        self._is_planned(step)

    def _load(self, step: StepRun, draft: StepPlan) -> None:
        for row in draft.rows():
            self._floor.load(step, row)

    async def _load_targets(self, step: StepRun) -> None:
        which = (step.run.day, step.run.id, step.plan.step_id)
        for row in await self._road.rows(Q.live_targets, *which, limit=120.0):
            self._floor.load(step, dict(row))
        self._is_planned(step)

    def _is_planned(self, step: StepRun) -> None:
        step.planned = True
        self.orders.reached(step)
        if step.over:
            self._stir(step.run)

    # Its end

    async def _end_step(self, step: StepRun) -> bool:
        run, id = step.run, step.plan.step_id
        if id not in run.reached and not await self._is_reached(step):
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
        run.reached[id] = ReachedStep(id, lifecycle)
        run.step = None

    def _over(self, run: Run) -> None:
        self._floor.forget(run)
        for other in self._floor.runs.values():
            if other.job_id == run.job_id:
                other.queued = False
                self._stir(other)

    def _rest(self, run: Run) -> None:
        run.rests_until = self._means.clock.monotonic() + REST
