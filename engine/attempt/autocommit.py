"""A script whose statements commit one by one: their effects can't be rolled back."""

import asyncio
from collections.abc import Sequence
from functools import partial

import asyncpg
from msgspec.structs import replace

from engine.access.commit_status import AUTOCOMMIT
from engine.attempt import outcome as outcomes
from engine.attempt import session_setup, spooling
from engine.attempt.canceller import CanceledError
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import STATEMENT_ERRORS, Phase, ScriptRun
from engine.attempt.transaction_state import TransactionEnded
from engine.attempt.verification import ask_next, with_verification
from engine.pgwire.errors import CONNECTION_CLOSED
from engine.pgwire.result_set import ResultSet, rows_of
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

INVALID_INDEXES_TIMEOUT = 5.0  # seconds


class AutocommitRun(ScriptRun):
    transactional = False
    _sent = False  # a statement of the script
    _undone = True  # no effect of the script stays if the statement that was sent last fails
    _invalid_before: frozenset[str] | None = None

    @property
    def phases(self) -> Sequence[Phase]:
        return with_verification(
            self, (self._setup, self._script, partial(spooling.complete, self))
        )

    async def run(self) -> Outcome | None:
        """None: the task was revoked before its first statement was sent."""
        if self.task.script_outcome is None and (why := self._impossible()):
            return await self.rejected_by_us(why, reason="TransactionModeNotPossible")
        try:
            return await self.run_phases()
        except CanceledError:  # before the next statement was sent
            safe = self.step.options.idempotent or not self.completed
            return await self._with_effects(ask_next(self, await self.stopped(safe=safe)))
        except TransactionEnded:
            return await self._with_effects(await self.ended_transaction())
        except Fault as fault:
            outcome = await self.rejected_by_us(fault.message, reason="StatementFailed")
            return await self._with_effects(outcome)
        except STATEMENT_ERRORS as error:
            return await self._with_effects(await self._failed(error))

    def _impossible(self) -> str:
        if self.session.pooled:
            return "With a pooler in transaction mode nothing can run outside of a transaction."
        rolls_back = self.task.rolls_back
        return "Statements that commit one by one can't be rolled back." if rolls_back else ""

    async def _setup(self) -> Outcome | None:
        if self.step.options.settings.parameters:
            await self.find_unknown_parameters()
        if any("concurrently" in part.head for part in self.step.parts):
            self._invalid_before = _names(await self.query(Q.invalid_indexes))
        try:
            await self.execute(session_setup.autocommit_setup(self.setup_context).text)
        except asyncpg.DivisionByZeroError:
            return await self.preflight_failed()
        return None

    async def _script(self) -> Outcome | None:
        if (outcome := await self.confirm_intent(AUTOCOMMIT)) is not None:
            return outcome
        self.session.result_reader.reset()
        self.stopwatch.begin_phase("running")
        current = self.step.lock_timeout
        for part in self.step.parts:
            self._undone = not (self.completed or part.commits_inside)
            if (lock_timeout := self.step.lock_timeout_of(part)) != current:
                await self.execute(session_setup.lock_timeout(lock_timeout))
                current = lock_timeout
            self._sent = True
            self.keep(await self.query_part(part))
        return None

    @property
    def _safe(self) -> bool:
        return self.step.options.idempotent or not self._sent

    async def _failed(self, error: BaseException) -> Outcome:
        if not isinstance(error, CONNECTION_CLOSED):
            return await self.failed(error, undone=self._undone)
        if abort := await self.client_side_abort():
            return _with_sentence(abort, "What the statement wrote may be committed.")
        # If the server sent an error before it closed the connection, it has aborted the statement.
        certain = not self._sent or error.__cause__ is not None
        if self.canceller.reason and certain:
            return ask_next(self, await self.stopped(safe=self._safe))
        reason = "OutcomeUnknown" if self._sent else "ConnectionLost"
        outcome = await self.connection_lost(error, reason=reason, retry=self._safe)
        outcome = ask_next(self, outcome)
        if self.canceller.reason:
            message = f"{outcomes.STOP_MESSAGES[self.canceller.reason]} {outcome.message}"
            return replace(outcome, message=message, last_message=message)
        return outcome

    async def _with_effects(self, outcome: Outcome) -> Outcome:
        """Adds which statements stay committed."""
        if self.completed:
            count = self.completed
            which = "Statement 1 stays" if count == 1 else f"Statements 1 to {count} stay"
            outcome = _with_sentence(outcome, f"{which} committed.")
        elif self._sent and not self._undone:
            outcome = _with_sentence(outcome, "What it committed inside itself stays.")
        return await self._with_invalid_indexes(outcome)

    async def _with_invalid_indexes(self, outcome: Outcome) -> Outcome:
        """A failed CONCURRENTLY leaves an index that IF NOT EXISTS of another attempt would accept."""
        before = self._invalid_before
        if before is None or not self._sent:
            return outcome
        try:
            async with asyncio.timeout(INVALID_INDEXES_TIMEOUT):
                new = await self._invalid_now() - before
        except (*STATEMENT_ERRORS, Fault, TimeoutError):
            return outcome
        if not new:
            return outcome
        names = ", ".join(sorted(new))
        sentence = f"INVALID and in need of DROP INDEX or REINDEX: {names}."
        return replace(_with_sentence(outcome, sentence), retry=False, again=False)

    async def _invalid_now(self) -> frozenset[str]:
        if not self.session.lost and not self.session.unusable:
            return _names(await self.session.query(Q.invalid_indexes))
        async with self.session.second_connection() as other:
            return frozenset(row["name"] for row in await other.fetch(Q.invalid_indexes))


def _with_sentence(outcome: Outcome, sentence: str) -> Outcome:
    message = f"{(outcome.message or '').rstrip('.')}. {sentence}"
    return replace(outcome, message=message, last_message=message)


def _names(sets: list[ResultSet]) -> frozenset[str]:
    return frozenset(str(row[0]) for row in rows_of(sets))
