"""The life of a run from step to step, as a table.

The controller calls `advance` for each run that may move, and `load_next` and `write` while it reserves
tasks. The lifecycle calls the controller only by `wake`. A run begins in one transaction with its first
step, the targets of that step and their first tasks, unless the plan is large or servers must list its
targets; a run ends in one transaction with its last step.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

from engine.context.core_context import CoreContext
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
from engine.scheduling.runs import RunPhase as P
from muster.core import telemetry
from muster.core.errors import Fault

log = telemetry.get(__name__)

RETRY_INTERVAL = timedelta(seconds=1)  # while the control database is unavailable


class By(Enum):
    """What performs a move."""

    ADVANCE = auto()  # the controller advances the run
    BACKGROUND = auto()  # a task of its own: it may wait for servers or write for minutes
    RESERVE = auto()  # the controller reserves tasks: plan and tasks are written together


Condition = Callable[[RunActions, Run], bool]
Action = Callable[..., Awaitable[None]]


@dataclass(frozen=True)
class Move:
    phase: P
    condition: Condition
    action: Action
    next: tuple[P, ...]
    by: By = By.ADVANCE


do = RunActions
# A run without a current step is CREATED or BETWEEN_STEPS; the other phases are those of its step.
# The first move whose condition holds is made. A run that the database does not let begin (it overlaps an
# older run, or the account is paused) goes back to CREATED and waits there for the next wake-up.
# fmt: off
MOVES = (
    #    in phase         if                   does                 then
    Move(P.CREATED,       do.may_enter_step,   do.enter_step,       (P.ENTERED,)),
    Move(P.CREATED,       do.may_begin,        do.begin_run,        (P.BETWEEN_STEPS, P.CREATED, P.ENDED)),
    Move(P.BETWEEN_STEPS, do.has_next_step,    do.enter_step,       (P.ENTERED,)),
    Move(P.BETWEEN_STEPS, do.always,           do.end_run,          (P.ENDED,)),
    Move(P.ENTERED,       do.is_snapshotted,   do.load_targets,     (P.QUEUED,)),
    Move(P.ENTERED,       do.is_canceled,      do.end_step,         (P.BETWEEN_STEPS, P.QUEUED, P.CREATED, P.ENDED)),
    Move(P.ENTERED,       do.always,           do.plan,             (P.PLANNED, P.RESOLVING)),
    Move(P.RESOLVING,     do.always,           do.resolve,          (P.PLANNED, P.BETWEEN_STEPS, P.CREATED, P.ENDED), By.BACKGROUND),
    Move(P.PLANNED,       do.is_canceled,      do.discard_plan,     (P.ENTERED,)),
    # The gate: a planned step is queued only while it is open.
    Move(P.PLANNED,       do.may_queue_large,  do.write_large_plan, (P.QUEUED, P.BETWEEN_STEPS, P.CREATED, P.ENDED), By.BACKGROUND),
    Move(P.PLANNED,       do.may_queue_small,  do.load_plan,        (P.LOADED,), By.RESERVE),
    Move(P.LOADED,        do.always,           do.write_plan,       (P.QUEUED, P.BETWEEN_STEPS, P.CREATED, P.ENDED), By.RESERVE),
    Move(P.QUEUED,        do.is_step_finished, do.end_step,         (P.BETWEEN_STEPS, P.ENDED)),
    Move(P.QUEUED,        do.is_aborted,       do.abort_step,       (P.QUEUED,)),
    Move(P.QUEUED,        do.has_decision,     do.apply_decision,   (P.QUEUED,)),
)
# fmt: on
WAITING = frozenset({P.CREATED, P.ENDED})  # no further move follows at once


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
            wake=self.wake,
        )

    @property
    def documents(self) -> dict[str, Document]:
        """Target groups by name, as the last updates contain them."""
        return self._actions.documents

    def end(self) -> None:
        self._background.cancel_all()
        self.late_listing.end()

    def wake(self, run: Run) -> None:
        """The run may move, and the controller is woken to advance it."""
        self.pending.add(run)
        self._wake_controller()

    async def advance(self, run: Run) -> None:
        """Makes every move that is possible now. An unexpected error pauses this run, not the others."""
        if run.retry_at > self._clock.monotonic() or run.step in self._background:
            return
        try:
            while (move := self._find(run, By.ADVANCE)) is not None:
                await self._perform(move, run)
                if run.phase in WAITING:
                    return
        except (Fault, Disagreement):
            raise
        except Exception:
            log.exception("run failed to advance", run=run.id)
            self._actions.abandon_step(run)
            return
        move = self._find(run, By.BACKGROUND)
        if move is not None and run.step is not None:
            self._background.start(run.step, self._perform_until_available(move, run, run.step))

    async def load_next(self) -> Run | None:
        """Loads a plan that may be queued. `write` must follow, with the tasks reserved of it."""
        for step in self._actions.plans:
            move = self._find(step.run, By.RESERVE)
            if move is not None:
                await self._perform(move, step.run)
                return step.run
        return None

    async def write(self, run: Run, batch: ReservationBatch) -> None:
        """Writes the loaded plan and these tasks in one transaction."""
        move = self._find(run, By.RESERVE)
        assert move is not None
        await self._perform(move, run, batch)

    def _find(self, run: Run, by: By) -> Move | None:
        for move in MOVES:
            if move.phase is run.phase and move.by is by and move.condition(self._actions, run):
                return move
        return None

    async def _perform(self, move: Move, run: Run, *args: ReservationBatch) -> None:
        await move.action(self._actions, run, *args)
        assert run.phase in move.next, f"{move.phase} does not lead to {run.phase}"

    async def _perform_until_available(self, move: Move, run: Run, step: StepRun) -> None:
        while True:
            try:
                await self._perform(move, run)
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
        elif step.phase is P.RESOLVING:
            step.phase = P.ENTERED  # it was canceled
        self.wake(step.run)
