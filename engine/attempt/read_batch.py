"""Tasks that only read, said to their database in one breath: started together, and an outcome of its own for each.

    riders = [Rider(task, token, deadline), …]           of one step, first attempts, on one session
    for task, outcome in await run(session, riders, step, start=…): …

None of them is committed that wrote anything, so whatever comes in between is no loss: one that has to stop, or takes
long, breaks the flight off. Who got no answer of its own by then is made again, as an attempt that does not count,
and goes alone.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from uuid import UUID

from engine.attempt import session_setup
from engine.attempt.cancel_token import CANCELED, TIMED_OUT, CancelToken
from engine.attempt.canceller import CanceledError, SessionCanceller
from engine.attempt.outcome import BROKEN_OFF, Outcome
from engine.attempt.script_run import INTERRUPTED, LOCKED, ScriptRun
from engine.attempt.session_setup import SetupContext
from engine.attempt.stopwatch import Stopwatch
from engine.attempt.transaction_state import FAILED_TRANSACTION, IN_TRANSACTION, controlled
from engine.model.task import UNLISTED, Step, Task, application_name, values
from engine.pgwire.connection import Pipeline, PipelinedQuery, QueryReply
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault

MOST = 16  # that go together
PATIENCE = 1.0  # seconds for all of them
BRIEF = 0.5  # seconds for a cancel: behind who is hit there may be others like it
ZERO = "22012"
# Divides by zero, which rolls back, when something was written after all.
UNWRITTEN = (
    "\n;select where 0 operator(pg_catalog.=)"
    " (1 operator(pg_catalog./) pg_catalog.int4(pg_catalog.txid_current_if_assigned() is null))"
)
AGAIN = "It went to its database together with others and was broken off; it is made again."
SILENCE = QueryReply([], [], 0, 0, 0, None, 0.0)


class BatchTask(NamedTuple):
    task: Task
    token: CancelToken
    deadline: float  # of the loop's time


def may_batch(task: Task) -> bool:
    """What was broken off once goes alone."""
    return task.attempt == 1 and task.database_name is not None and UNLISTED not in task.labels


async def run(
    session: PooledConnection,
    riders: Sequence[BatchTask],
    step: Step,
    *,
    start: Callable[[], Awaitable[set[UUID]]],
) -> list[tuple[Task, Outcome]]:
    """Without those whose start was refused. Breaking this off hangs up on the target."""
    watch = Stopwatch(session)
    refused = await start()
    riders = [rider for rider in riders if rider.task.invocation_id not in refused]
    if not riders:
        return []
    watch.turn("running")
    token = CancelToken()
    name = application_name(riders[0].task.invocation_id)
    for rider in riders:
        rider.token.listen(partial(_pass_on, rider.token, token))
    patience = session.loop.call_later(PATIENCE, token.cancel, BROKEN_OFF)
    try:
        until = min(rider.deadline for rider in riders)
        with SessionCanceller(session, name, token, until, BRIEF) as stop:
            began = session.loop.time()
            flight = await _fly(session, riders, step, stop)
            seats = [BatchResult(session, rider, step, stop) for rider in riders]
            _share(watch, began, flight, seats)
            return [(seat.task, await seat.judge(flight, at)) for at, seat in enumerate(seats)]
    except BaseException:
        session.abandon()
        raise
    finally:
        patience.cancel()
        for rider in riders:
            rider.token.listen(None)


def _pass_on(own: CancelToken, token: CancelToken) -> None:
    token.cancel(own.reason or BROKEN_OFF)


async def _fly(
    session: PooledConnection, riders: Sequence[BatchTask], step: Step, stop: SessionCanceller
) -> Pipeline:
    try:
        legs = [_leg(session, rider, step) for rider in riders]
        stop.depart()
        return await session.fly(legs)
    except (Fault, CanceledError):  # whatever it is, each is told by itself
        return Pipeline(session.ear, (), session.loop)
    finally:
        stop.land()


def _leg(session: PooledConnection, rider: BatchTask, step: Step) -> PipelinedQuery:
    task = rider.task
    left = rider.deadline - session.loop.time()
    name = application_name(task.invocation_id)
    scene = SetupContext(
        task, step, name, left, session.watches_client, session.preset, frozenset()
    )
    opening, (piece,) = session_setup.transactional_setup(scene), step.pieces
    text = piece.rendered(values(task, step)) if piece.varies else piece.text
    more = "" if step.read_only else UNWRITTEN
    return PipelinedQuery(
        f"{step.banner}{opening.text};", text + more, opening.statements, _end(task)
    )


def _end(task: Task) -> str:
    return "rollback" if task.rolls_back else "commit"


def _ended_transaction(answer: QueryReply) -> bool:
    """Whether the transaction was another one after the text, which is followed by at most one query of ours."""
    failed = answer.failure is not None and answer.status == FAILED_TRANSACTION
    same = failed or answer.skipping or answer.status == IN_TRANSACTION
    return controlled(answer.sets) or not same


def _share(
    watch: Stopwatch, began: float, flight: Pipeline, seats: Sequence["BatchResult"]
) -> None:
    """Each has the time until its answer from the one before; the first has waited for them all."""
    at = [began, *(answer.at for answer in flight.answers)]
    for seat, (before, then) in zip(seats, pairwise(at), strict=False):
        seat.watch.taken["running"] = round((then - before) * 1000, 1)
    seats[0].watch.taken |= {name: ms for name, ms in watch.taken.items() if name != "running"}


class Times(Stopwatch):
    """What was measured by others."""

    def __init__(self) -> None:
        self.taken = {}

    def turn(self, phase: str) -> None:
        """It is over already."""


class BatchTaskCanceller:
    """The wish that one of them stops."""

    def __init__(self, rider: BatchTask, stop: SessionCanceller, time: Callable[[], float]) -> None:
        self._rider = rider
        self._stop = stop
        self._time = time

    @property
    def reason(self) -> str | None:
        return self._rider.token.reason or (TIMED_OUT if self.out_of_time() else None)

    @property
    def needed(self) -> str | None:
        return self._stop.needed if self.reason else None

    def out_of_time(self) -> bool:
        return self._time() >= self._rider.deadline

    def depart(self) -> None:
        """All have landed: whoever asks more may."""

    def land(self) -> None:
        """It has."""


class BatchResult(ScriptRun):
    """One of them; all have landed before it is judged."""

    def __init__(
        self, session: PooledConnection, rider: BatchTask, step: Step, stop: SessionCanceller
    ) -> None:
        name = application_name(rider.task.invocation_id)
        own = BatchTaskCanceller(rider, stop, session.loop.time)
        super().__init__(session, rider.task, step, name, own, Times())
        self._others = stop

    async def judge(self, flight: Pipeline, at: int) -> Outcome:
        answers = flight.answers
        if at < len(answers):
            self.ear = answers[at]
            dirty = any(not each.clean for each in answers[:at])
            return await (self._again() if dirty else self._answered(answers[at]))
        if at > len(answers):
            self.ear = SILENCE  # what was heard last was said of another
        if self.stop.reason:
            return await self.stopped(safe=True)
        if at > len(answers) or self._others.reason or not self.session.lost:
            return await self._again()
        if refusal := await self.unless_heard():
            return refusal
        return await self.broken(flight.loss, reason="ConnectionLost", retry=True)

    async def _answered(self, answer: QueryReply) -> Outcome:
        error = answer.error
        if _ended_transaction(answer):
            return await self.ended_transaction()
        (self._piece,) = self.step.pieces
        self._offset = answer.offset
        if error is None and answer.tag == _end(self.task).upper():
            self.phase = "run" if self.step.read_only else "commit"
            self.completed = 1
            self.keep(answer.sets if self.step.read_only else answer.sets[:-1])
            return await self.succeeded()
        state = None if error is None else error.sqlstate
        if state == ZERO and answer.sets:  # behind the query
            self.step.goes_alone()  # it writes, whatever its words are
        elif error is not None and not self._alone_it_tells_more(state, answer):
            return await self.failed(error, undone=True)
        return await self._again()

    def _alone_it_tells_more(self, state: str | None, answer: QueryReply) -> bool:
        """Who blocks it, what is in its way, or nothing at all: it was hit by what was meant for another."""
        mine = self.stop.reason is not None
        return (
            state == LOCKED
            or (state == ZERO and answer.skipping > 0)
            or (state == INTERRUPTED and not mine)
        )

    async def _again(self) -> Outcome:
        return await self.ended(
            lifecycle=CANCELED, again=True, reason=BROKEN_OFF, message=AGAIN, fingerprint=BROKEN_OFF
        )
