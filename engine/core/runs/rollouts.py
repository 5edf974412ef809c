"""Carries out what the rollout of a step decides: in the database first, then in memory.

Memory follows the reply of a statement without an await in between, so nothing can come between the two.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from engine.core.runs.execution_store import ExecutionStore, Q
from engine.scheduling.rollout import (
    Decision,
    Halt,
    OpenWave,
    RolloutRules,
    StepRollout,
    Wait,
    decide,
)
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run, StepDefinition, StepRun
from muster.core import telemetry
from muster.core.failpoints import reach

log = telemetry.get(__name__)

ABORT_TIMEOUT = 60.0  # seconds to end the waiting targets of a step; it may have a million


class RolloutUpdate(msgspec.Struct, frozen=True):
    """What an operator wants of a step that is halted or waits at a gate."""

    job_execution_id: UUID
    step_id: int
    approved_wave: int
    resumed_at: str | None = None
    aborted: bool = False


class Rollouts:
    def __init__(
        self, executions: ExecutionStore, run_state: RunState, now: Callable[[], float]
    ) -> None:
        self._executions = executions
        self._run_state = run_state
        self._now = now  # by the database's clock

    async def load(self, step: StepRun) -> None:
        """Computes the progress of a step that is in the database, and that of its chain."""
        step.rollout, step.aborted = await self._progress(step.run, step.plan)
        before = step.run.before(step.plan)
        if before is not None:
            step.rollout.join(await self._chain(step.run, before))

    async def _chain(self, run: Run, plan: StepDefinition) -> list[StepRollout]:
        """The rollouts of a chain up to this step, which may have ended."""
        step = run.find(plan.step_id)
        if step is not None and step.rollout is not None:
            return step.rollout.chain
        if run.reached[plan.step_id].snapshot_id is None:  # it ended without targets
            return []
        rollout, _ = await self._progress(run, plan)
        before = run.before(plan)
        if before is not None:
            rollout.join(await self._chain(run, before))
        return rollout.chain

    async def _progress(self, run: Run, plan: StepDefinition) -> tuple[StepRollout, bool]:
        """The rollout of the step as its rows tell, and whether it was aborted."""
        limit = self._run_state.same_error_limit
        (row,) = await self._executions.rows(Q.rollout_progress, run.id, plan.step_id, limit)
        rules = RolloutRules.of(plan.options, row["targets"])
        rollout = StepRollout(rules, wave=row["wave"], approved_wave=row["approved_wave"])
        for lifecycle, sqlstate in zip(row["lifecycles"], row["sqlstates"], strict=True):
            rollout.count(lifecycle, sqlstate)
        rollout.failures = row["failures"]
        rollout.ended_at = row["ended_at"]
        rollout.halted = row["halted"]
        rollout.resumed_at = row["resumed_at"]
        return rollout, row["aborted"]

    def update(self, updates: list[RolloutUpdate]) -> list[Run]:
        """Applies resumes and aborts; returns the runs that may move."""
        runs = []
        for each in updates:
            step = self._queued_step(each)
            if step is None or step.rollout is None:
                continue
            rollout = step.rollout
            if each.aborted and not step.aborted:
                step.aborted = True
                runs.append(step.run)
            elif each.resumed_at != rollout.resumed_at:
                rollout.approved_wave = each.approved_wave
                rollout.resume(each.resumed_at)
                self._run_state.enqueue_waiting(step)
                runs.append(step.run)
        return runs

    def _queued_step(self, update: RolloutUpdate) -> StepRun | None:
        """None: a step that is loaded later is loaded with the update."""
        run = self._run_state.runs.get(update.job_execution_id)
        step = run.find(update.step_id) if run is not None else None
        return step if step is not None and step.is_queued else None

    def decision(self, step: StepRun) -> Decision | None:
        """What must be carried out now."""
        if step.rollout is None or step.aborted or step.canceled:
            return None
        run = step.run
        later = run.live[run.live.index(step) + 1 :]
        decision = decide(
            step.rollout,
            waiting=len(step.waiting),
            same_error_limit=self._run_state.same_error_limit,
            now=self._now(),
            chain_busy=not all(each.is_idle for each in later) or run.next_of_chain() is not None,
        )
        return None if decision == step.rollout.wait else decision

    async def apply(self, step: StepRun) -> None:
        decision = self.decision(step)
        assert decision is not None
        assert step.rollout is not None
        match decision:
            case Halt():
                await self._halt(step, step.rollout, decision)
            case OpenWave(wave):
                await self._open(step, step.rollout, wave)
            case Wait(reason, message, until):
                await self._rows(step, Q.wait_for_wave, reason, message, until)
                step.rollout.wait = decision

    async def _halt(self, step: StepRun, rollout: StepRollout, halt: Halt) -> None:
        """Reservations that have not started are taken back; what runs goes on."""
        await reach("core.before_halt")
        rows = await self._rows(step, Q.halt_step, halt.rule, halt.message)
        rollout.halted = True
        self._run_state.hold_waiting(step)
        for row in rows:
            self._run_state.release(row["invocation_id"])
        await reach("core.halted")
        log.warning("run halted", run=step.run.id, step=step.plan.step_id, rule=halt.rule)

    async def _open(self, step: StepRun, rollout: StepRollout, wave: int) -> None:
        await reach("core.before_wave")
        await self._rows(step, Q.open_wave, wave)
        rollout.wave, rollout.wait = wave, None
        rollout.unfinished = sum(ordinal <= rollout.open_end for ordinal in step.waiting)
        self._run_state.enqueue_waiting(step)
        await reach("core.wave_opened")

    async def abort(self, step: StepRun) -> None:
        """Ends the waiting targets; attempts that run go on to their end."""
        await reach("core.before_abort")
        rows = await self._rows(step, Q.abort_step, limit=ABORT_TIMEOUT)
        invocations = self._run_state.invocations(step)
        for row in rows:
            self._run_state.remove(step, row["ordinal"], invocations.get(row["ordinal"]))
        await reach("core.aborted")

    async def _rows(
        self, step: StepRun, query: str, *args: Any, limit: float | None = None
    ) -> list[Any]:
        return await self._executions.rows(
            query, step.run.id, step.plan.step_id, *args, limit=limit
        )
