"""A script as one transaction: committed as a whole, or known not to be."""

from collections.abc import Sequence

import asyncpg

from engine.access.commit_status import xact_id
from engine.attempt import idempotency_guard, session_setup
from engine.attempt.canceller import CanceledError
from engine.attempt.commit_check import commit_status
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import NOTHING, REFUSED, Intend, ScriptRun
from engine.attempt.session_setup import SetupMessage
from engine.attempt.transaction_state import TransactionEnded
from engine.pgwire.connection import GONE
from engine.pgwire.results import ResultSet, UnexpectedAnswer, rows_of
from muster.core.errors import Fault

WITH_ID = "\n;select pg_catalog.txid_current_if_assigned()"
ASK_AT_LEAST, ASK_AT_MOST = 5.0, 30.0  # seconds for what became of a lost COMMIT


class TransactionalRun(ScriptRun):
    _last: Sequence[
        ResultSet
    ] = ()  # answers to what went along with the last statement, or after it
    _opening = NOTHING  # what is said before the first statement, and goes along with it

    async def run(self, intend: Intend, deadline: float) -> Outcome | None:
        """None: the intent to commit was refused, and everything was rolled back."""
        try:
            return (
                await self._begin(deadline)
                or await self._statements()
                or await self._commit(intend, deadline)
            )
        except CanceledError:
            await self.roll_back()
            return await self.stopped(safe=True)
        except TransactionEnded:
            return await self.ended_transaction()
        except Fault as fault:
            distrusted = fault.code == idempotency_guard.NOT_TRUSTED
            return await self.refused(
                fault.message, reason=fault.code if distrusted else "StatementFailed"
            )
        except REFUSED as error:
            return await self._not_committed(error)

    async def _begin(self, deadline: float) -> Outcome | None:
        """None: the script can be sent, perhaps with what is said before it."""
        if self.step.options.settings.parameters:
            await self.leave_out_unknown()
        opening = session_setup.transactional_setup(self.scene(deadline))
        if self.step.guarded:
            return await self._begin_guarded(opening)
        if self.session.ear.standard_strings:
            text = f"{self.step.banner}{opening.text};"
            self._opening = SetupMessage(text, opening.statements)
        else:  # a message is read as a whole before its first SET
            await self.ask(opening.text, skip=opening.statements)
        return None

    async def _begin_guarded(self, opening: SetupMessage) -> Outcome | None:
        try:
            await idempotency_guard.ensure(self.session, self.ask, self.say)
            sets = await self.ask(opening.text)
        except asyncpg.InsufficientPrivilegeError as error:
            raise self._right(error) from None
        except asyncpg.DivisionByZeroError:
            return await self.obstacle()
        return await self._applied_before() if rows_of(sets, opening.guard) else None

    async def _record(self) -> Outcome | None:
        """After the script and before COMMIT; as the login, whose table it is."""
        try:
            text = f"reset role;{idempotency_guard.record(self.task, self.step)}{WITH_ID}"
            found = await self.ask(text)
        except asyncpg.InsufficientPrivilegeError as error:
            raise self._right(error) from None
        if [each.tag for each in found[:2]] == ["RESET", "INSERT 0 0"]:
            return await self._applied_before()
        self._last = found
        return None

    async def _applied_before(self) -> Outcome:
        await self.roll_back()
        self.forget()
        return await self.succeeded("AlreadyApplied")

    def _right(self, error: asyncpg.InsufficientPrivilegeError) -> Exception:
        """For a right that the guard needs: an error with the statements that grant it."""
        is_guards = any(name in str(error) for name in idempotency_guard.NAMES)
        return idempotency_guard.missing_right(self.session) if is_guards else error

    async def _statements(self) -> Outcome | None:
        """None: COMMIT is to be sent."""
        self.session.ear.reset()
        self.watch.turn("running")
        *before, last = self.step.pieces
        for piece in before:
            self.keep(await self.ask_piece(piece, before=self._taken_opening()))
        end = "\n;rollback" if self.task.rolls_back else "\n;commit"
        ends = self.step.read_only or self.task.rolls_back
        if self.step.guarded and not ends:
            self.keep(await self.ask_piece(last, before=self._taken_opening()))
        else:
            more = end if ends else WITH_ID
            *found, own = await self.ask_piece(last, more, self._taken_opening(), ends=ends)
            self._last = [own]
            self.keep(found)
        if ends:
            return await self.succeeded()
        return await self._record() if self.step.guarded else None

    def _taken_opening(self) -> SetupMessage:
        opening, self._opening = self._opening, NOTHING
        return opening

    async def _commit(self, intend: Intend, deadline: float) -> Outcome | None:
        self.phase = "commit"
        self.watch.turn("committing")
        [[xid, *_], *_] = rows_of(self._last, -1, least=1)
        if not isinstance(xid, int | None):
            raise UnexpectedAnswer("a transaction's id is no number")
        xact = None if xid is None else xact_id(xid, self.session.timeline, self.session.era)
        if xact is not None and not (heard := await intend(xact)):
            return await self.not_intended(heard=heard)
        try:
            answer = await self.say_last("commit")
        except GONE as error:
            return await self._committed_or_not(error, xact, deadline)
        if answer != "COMMIT":
            return await self.refused(
                "The target rolled the transaction back instead of committing it.",
                reason="StatementFailed",
                retry=True,
            )
        return await self.succeeded()

    async def _not_committed(self, error: BaseException) -> Outcome:
        if not isinstance(error, GONE):
            if self.session.ear.skipping and isinstance(error, asyncpg.DivisionByZeroError):
                return await self.obstacle()
            await self.roll_back()
            return await self.failed(error, undone=True)
        if refusal := await self.unless_heard():
            return refusal
        if self.stop.reason:
            return await self.stopped(safe=True)
        return await self.broken(error, reason="ConnectionLost", retry=True)

    async def _committed_or_not(
        self, error: BaseException, xact: str | None, deadline: float
    ) -> Outcome:
        if xact is None:
            if self.stop.reason:
                return await self.stopped(safe=True)
            return await self.broken(error, reason="ConnectionLost", retry=True)
        now = self.session.loop.time()
        until = now + min(max(deadline - now, ASK_AT_LEAST), ASK_AT_MOST)
        match await commit_status(self.session, xact, until):
            case "committed":
                return await self.succeeded()
            case "aborted" if self.stop.reason:
                return await self.stopped(safe=True)
            case "aborted":
                return await self.broken(error, reason="ConnectionLost", retry=True)
            case _:
                may = self.step.options.idempotent or self.step.guarded
                return await self.broken(error, reason="OutcomeUnknown", retry=may)
