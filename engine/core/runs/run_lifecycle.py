"""The life of a run from step to step, as a table, and that of each of its steps.

The controller calls `advance` for each run that may move, and `load_next` and `write` while it reserves
tasks. The lifecycle calls the controller only by `wake`. A run begins in one transaction with its first
step, the targets of that step and their first tasks, unless the plan is large or servers must list its
targets; a run ends in one transaction with its last step.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Generic, TypeVar
from uuid import UUID

from engine.context.core_context import CoreContext
from engine.core.runs.attempts import RunAttempts
from engine.core.runs.background import BackgroundTasks
from engine.core.runs.cancellations import Cancellations
from engine.core.runs.execution_store import ExecutionStore, ReservationBatch
from engine.core.runs.late_listing import LateListing
from engine.core.runs.planner import Planner
from engine.core.runs.queue_gate import BeginGate
from engine.core.runs.rollouts import Rollouts
from engine.core.runs.run_actions import RunActions
from engine.model.group_document import Document
from engine.process.exit_codes import FINAL, Disagreement
from engine.scheduling.run_state import RunState
from engine.scheduling.runs import Run, StepRun
from engine.scheduling.runs import RunPhase as R
from engine.scheduling.runs import StepPhase as S
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)

RETRY_INTERVAL = timedelta(seconds=1)  # while the control database is unavailable


class By(Enum):
    """What performs a move."""

    ADVANCE = auto()  # the controller advances the run
    BACKGROUND = auto()  # a task of its own: it may wait for servers or write for minutes
    RESERVE = auto()  # the controller reserves tasks: plan and tasks are written together


T = TypeVar("T", Run, StepRun)
Condition = Callable[[RunActions, T], bool]
Action = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Move(Generic[T]):
    phase: R | S
    condition: Condition[T]
    action: Action
    next: tuple[R | S, ...]
    by: By = By.ADVANCE


do = RunActions
# The first move whose condition holds is made, of the run before those of its live steps.
# A run that the database does not let begin (it overlaps an older run, or the account is paused) goes back to
# CREATED and waits there for the next wake-up.
# Several steps are live in a chain: a step with advance perTarget is entered when the step before it is queued. So
# only the last live step is not queued, and steps end in their order.
# fmt: off
RUN_MOVES: tuple[Move[Run], ...] = (
    #    in phase            if                 does                 then
    Move(R.CREATED,          do.may_enter_step, do.enter_step,       (R.IN_STEPS,)),
    Move(R.CREATED,          do.may_begin,      do.begin_run,        (R.BETWEEN_STEPS, R.CREATED, R.ENDED)),
    Move(R.BETWEEN_STEPS,    do.has_next_step,  do.enter_step,       (R.IN_STEPS, R.BETWEEN_ATTEMPTS)),
    Move(R.BETWEEN_STEPS,    do.always,         do.end_run,          (R.ENDED,)),
    Move(R.IN_STEPS,         do.chain_goes_on,  do.enter_chain_step, (R.IN_STEPS,)),
    # Attempts: the steps of a run stay live from one attempt to the next.
    Move(R.IN_STEPS,         do.pass_has_ended, do.end_pass,         (R.IN_STEPS, R.BETWEEN_ATTEMPTS)),
    Move(R.BETWEEN_ATTEMPTS, do.chain_goes_on,  do.enter_chain_step, (R.BETWEEN_ATTEMPTS,)),
    Move(R.BETWEEN_ATTEMPTS, do.attempt_is_due, do.begin_attempt,    (R.BETWEEN_ATTEMPTS,)),
)
STEP_MOVES: tuple[Move[StepRun], ...] = (
    Move(S.ENTERED,       do.is_snapshotted,   do.load_targets,     (S.QUEUED,)),
    Move(S.ENTERED,       do.may_end_canceled, do.end_step,         (S.LEFT, S.QUEUED)),
    Move(S.ENTERED,       do.is_wanted,        do.plan,             (S.PLANNED, S.RESOLVING)),
    Move(S.RESOLVING,     do.always,           do.resolve,          (S.PLANNED, S.LEFT), By.BACKGROUND),
    Move(S.PLANNED,       do.is_canceled,      do.discard_plan,     (S.ENTERED,)),
    # The gate: a planned step is queued only while it is open.
    Move(S.PLANNED,       do.may_write_apart,  do.write_apart,      (S.QUEUED, S.LEFT, S.ENTERED), By.BACKGROUND),
    Move(S.PLANNED,       do.may_queue_small,  do.load_plan,        (S.LOADED,), By.RESERVE),
    Move(S.LOADED,        do.always,           do.write_plan,       (S.QUEUED, S.LEFT), By.RESERVE),
    Move(S.QUEUED,        do.may_end,          do.end_step,         (S.LEFT, S.QUEUED)),
    Move(S.QUEUED,        do.is_aborted,       do.abort_step,       (S.QUEUED,)),
    Move(S.QUEUED,        do.has_skipped,      do.skip_targets,     (S.QUEUED,)),
    Move(S.QUEUED,        do.has_decision,     do.apply_decision,   (S.QUEUED,)),
)
# fmt: on
WAITING = frozenset({R.CREATED, R.ENDED})  # no further move follows at once


class RunLifecycle:
    """Moves the runs of one RunState."""

    def __init__(
        self,
        context: CoreContext,
        executions: ExecutionStore,
        planner: Planner,
        run_state: RunState,
        wake: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        self._clock = context.clock
        self._run_state = run_state
        self._wake_controller = wake
        self.pending: set[Run] = set()  # runs that may move
        self._background = BackgroundTasks(self._background_ended)
        self.cancellations = Cancellations(executions, self._background.cancel)
        self.rollouts = Rollouts(executions, run_state, now)
        self.late_listing = LateListing(planner, executions, run_state, self.wake)
        begin_gate = BeginGate(context.cluster_state, run_state)
        self._actions = RunActions(
            clock=context.clock,
            executions=executions,
            planner=planner,
            run_state=run_state,
            cancellations=self.cancellations,
            begin_gate=begin_gate,
            queue_gate=begin_gate,
            rollouts=self.rollouts,
            attempts=RunAttempts(executions, now),
            wake=self.wake,
            metrics=context.metrics,
        )

    @property
    def documents(self) -> dict[str, Document]:
        """Target groups by name, as the last updates contain them."""
        return self._actions.documents

    def end(self) -> None:
        self._background.cancel_all()
        self.late_listing.end()

    def outdated_runs(self, retries: dict[UUID, int]) -> list[Run]:
        """Runs with targets that were retried after they were loaded, unless servers are being listed for them."""
        return [
            run
            for run in self._run_state.runs.values()
            if (run.outdated or run.retries < retries.get(run.id, 0))
            and not any(step in self._background or step in self.late_listing for step in run.live)
        ]

    def forget(self, run: Run) -> None:
        """The next updates contain the run, with the targets that were retried."""
        self._actions.forget_run(run)

    def wake(self, run: Run) -> None:
        """The run may move, and the controller is woken to advance it."""
        self.pending.add(run)
        self._wake_controller()

    async def advance(self, run: Run) -> None:
        """Makes every move that is possible now. An unexpected error pauses this run, not the others."""
        if run.retry_at > self._clock.monotonic():
            return
        try:
            while (found := self._next_move(run)) is not None:
                await self._perform(*found)
                if run.phase in WAITING:
                    return
        except (Fault, Disagreement):
            raise
        except Exception:
            log.exception("run failed to advance", run=run.id)
            self._actions.abandon_step(run)
            return
        for step in run.live:
            move = self._find(STEP_MOVES, step, By.BACKGROUND)
            if move is not None and step not in self._background:
                self._background.start(step, self._perform_until_available(move, step))

    def may_move(self, run: Run) -> bool:
        return self._next_move(run) is not None

    async def load_next(self) -> StepRun | None:
        """Loads a plan that may be queued. `write` must follow, with the tasks reserved of it."""
        for step in self._actions.plans:
            move = self._find(STEP_MOVES, step, By.RESERVE)
            if move is not None:
                await self._perform(move, step)
                return step
        return None

    async def write(self, step: StepRun, batch: ReservationBatch) -> None:
        """Writes the loaded plan and these tasks in one transaction."""
        move = self._find(STEP_MOVES, step, By.RESERVE)
        assert move is not None
        await self._perform(move, step, batch)

    def _next_move(self, run: Run) -> tuple[Move[Run], Run] | tuple[Move[StepRun], StepRun] | None:
        of_run = self._find(RUN_MOVES, run, By.ADVANCE)
        if of_run is not None:
            return of_run, run
        for step in run.live:
            if step not in self._background:
                of_step = self._find(STEP_MOVES, step, By.ADVANCE)
                if of_step is not None:
                    return of_step, step
        return None

    def _find(self, moves: tuple[Move[T], ...], subject: T, by: By) -> Move[T] | None:
        for move in moves:
            if (
                move.phase is subject.phase
                and move.by is by
                and move.condition(self._actions, subject)
            ):
                return move
        return None

    async def _perform(
        self, move: Move[Any], subject: Run | StepRun, *args: ReservationBatch
    ) -> None:
        await move.action(self._actions, subject, *args)
        assert subject.phase in move.next, f"{move.phase} does not lead to {subject.phase}"

    async def _perform_until_available(self, move: Move[StepRun], step: StepRun) -> None:
        while True:
            try:
                await self._perform(move, step)
                return
            except FINAL:
                raise
            except Fault as fault:
                if fault.code != "ControlDatabaseUnavailable":
                    await self._actions.fail_step(step, fault)
                    return
            await self._clock.sleep(RETRY_INTERVAL)

    def _background_ended(self, step: StepRun, error: BaseException | None) -> None:
        if error is not None:
            log.error("step could not be planned", exc_info=error)
            self._actions.abandon_step(step.run)
        elif step.phase is S.RESOLVING:
            step.phase = S.ENTERED  # it was canceled
        self.wake(step.run)
