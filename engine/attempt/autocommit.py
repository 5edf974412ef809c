"""A script whose statements commit by themselves: what was said can't be taken back."""

import asyncio

import asyncpg
from msgspec.structs import replace

from engine.access.commit_status import AUTOCOMMIT
from engine.attempt import outcome as outcomes
from engine.attempt import session_setup
from engine.attempt.canceller import CanceledError
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import REFUSED, Intend, ScriptRun
from engine.attempt.transaction_state import TransactionEnded
from engine.pgwire.connection import GONE
from engine.pgwire.results import ResultSet, rows_of
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

LOOK_LIMIT = 5.0  # seconds


class AutocommitRun(ScriptRun):
    transactional = False
    _sent = False
    _undone = True  # nothing of the script stays when what was sent last is refused
    _invalid_before: frozenset[str] | None = None

    async def run(self, intend: Intend, deadline: float) -> Outcome | None:
        """None: it may not begin, because nobody waits for it any more."""
        if why := self._impossible():
            return await self.refused(why, reason="TransactionModeNotPossible")
        try:
            return await self._begin(deadline) or await self._statements(intend)
        except CanceledError:  # before the next statement was sent
            safe = self.step.options.idempotent or not self.completed
            return await self._told_what_stays(await self.stopped(safe=safe))
        except TransactionEnded:
            return await self._told_what_stays(await self.ended_transaction())
        except Fault as fault:
            refused = await self.refused(fault.message, reason="StatementFailed")
            return await self._told_what_stays(refused)
        except REFUSED as error:
            return await self._told_what_stays(await self._failed(error))

    def _impossible(self) -> str:
        if self.session.pooled:
            return "Behind a pooler that lends by transactions nothing can run outside of one."
        return "What commits by itself can't be rolled back." if self.task.rolls_back else ""

    async def _begin(self, deadline: float) -> Outcome | None:
        if self.step.options.settings.parameters:
            await self.leave_out_unknown()
        if any("concurrently" in piece.head for piece in self.step.pieces):
            self._invalid_before = _names(await self.ask(Q.invalid_indexes))
        text = session_setup.autocommit_setup(self.scene(deadline))
        try:
            await self.say(text.text)
        except asyncpg.DivisionByZeroError:
            return await self.obstacle()
        return None

    async def _statements(self, intend: Intend) -> Outcome | None:
        if not (heard := await intend(AUTOCOMMIT)):
            return await self.not_intended(heard=heard)
        self.session.ear.reset()
        self.watch.turn("running")
        lock_timeout = self.step.lock_timeout
        for piece in self.step.pieces:
            self._undone = not (self.completed or piece.commits_inside)
            if (wanted := self.step.lock_timeout_of(piece)) != lock_timeout:
                await self.say(session_setup.lock_timeout(wanted))
                lock_timeout = wanted
            self._sent = True
            self.keep(await self.ask_piece(piece))
        return await self.succeeded()

    @property
    def _safe(self) -> bool:
        return self.step.options.idempotent or not self._sent

    async def _failed(self, error: BaseException) -> Outcome:
        if not isinstance(error, GONE):
            return await self.failed(error, undone=self._undone)
        if refusal := await self.unless_heard():
            return _adding(refusal, "What the statement wrote may be committed.")
        # What a server said last before it hung up is that it broke the statement off.
        known = not self._sent or error.__cause__ is not None
        if self.stop.reason and known:
            return await self.stopped(safe=self._safe)
        reason = "OutcomeUnknown" if self._sent else "ConnectionLost"
        outcome = await self.broken(error, reason=reason, retry=self._safe)
        if self.stop.reason:
            message = f"{outcomes.WISHES[self.stop.reason]} {outcome.message}"
            return replace(outcome, message=message, last_message=message)
        return outcome

    async def _told_what_stays(self, outcome: Outcome) -> Outcome:
        if self.completed:
            many = self.completed
            which = "Statement 1 stays" if many == 1 else f"Statements 1 to {many} stay"
            outcome = _adding(outcome, f"{which} committed.")
        elif self._sent and not self._undone:
            outcome = _adding(outcome, "What it committed inside itself stays.")
        return await self._told_what_is_invalid(outcome)

    async def _told_what_is_invalid(self, outcome: Outcome) -> Outcome:
        """A broken CONCURRENTLY leaves an index that another attempt would take for done."""
        before = self._invalid_before
        if before is None or not self._sent:
            return outcome
        try:
            async with asyncio.timeout(LOOK_LIMIT):
                left = await self._invalid_now() - before
        except (*REFUSED, Fault, TimeoutError):
            return outcome
        if not left:
            return outcome
        names = ", ".join(sorted(left))
        more = f"INVALID and in need of DROP INDEX or REINDEX: {names}."
        return replace(_adding(outcome, more), retry=False, again=False)

    async def _invalid_now(self) -> frozenset[str]:
        if not self.session.lost and not self.session.spoiled:
            return _names(await self.session.ask(Q.invalid_indexes))
        async with self.session.beside() as other:
            return frozenset(row["name"] for row in await other.fetch(Q.invalid_indexes))


def _adding(outcome: Outcome, more: str) -> Outcome:
    message = f"{(outcome.message or '').rstrip('.')}. {more}"
    return replace(outcome, message=message, last_message=message)


def _names(sets: list[ResultSet]) -> frozenset[str]:
    return frozenset(str(row[0]) for row in rows_of(sets))
