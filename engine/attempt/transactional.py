"""A script as one transaction: committed as a whole, or known not to be."""

from collections.abc import Sequence
from functools import partial

import asyncpg

from engine.access.commit_status import xact_id
from engine.attempt import idempotency_guard, session_setup, spooling
from engine.attempt.canceller import CanceledError
from engine.attempt.commit_check import commit_status
from engine.attempt.outcome import Outcome
from engine.attempt.script_run import NO_SETUP, STATEMENT_ERRORS, Phase, ScriptRun
from engine.attempt.session_setup import SetupMessage
from engine.attempt.transaction_state import TransactionEnded
from engine.attempt.verification import ask_next, with_verification
from engine.pgwire.errors import CONNECTION_CLOSED, UnexpectedAnswer
from engine.pgwire.result_set import ResultSet, rows_of
from muster.core.errors import Fault

WITH_ID = "\n;select pg_catalog.txid_current_if_assigned()"
MIN_STATUS_TIMEOUT, MAX_STATUS_TIMEOUT = 5.0, 30.0  # seconds to query the status of a lost COMMIT


class TransactionalRun(ScriptRun):
    _last: Sequence[ResultSet] = ()  # its last row has the transaction's id
    _pending_setup = NO_SETUP  # sent with the first statement
    _ended = False  # the transaction ended with the last statement: there is no COMMIT to send

    @property
    def phases(self) -> Sequence[Phase]:
        return with_verification(
            self, (self._setup, self._script, partial(spooling.complete, self), self._commit)
        )

    async def run(self) -> Outcome | None:
        """None: the commit intent was refused, and everything was rolled back."""
        try:
            return await self.run_phases()
        except CanceledError:
            await self.roll_back()
            return await self.stopped(safe=True)
        except TransactionEnded:
            return await self.ended_transaction()
        except Fault as fault:
            distrusted = fault.code == idempotency_guard.NOT_TRUSTED
            reason = fault.code if distrusted else "StatementFailed"
            return await self.rejected_by_us(fault.message, reason=reason)
        except STATEMENT_ERRORS as error:
            return await self._not_committed(error)

    async def _setup(self) -> Outcome | None:
        if self.step.options.settings.parameters:
            await self.find_unknown_parameters()
        setup = session_setup.transactional_setup(self.setup_context)
        if self.step.guarded:
            return await self._setup_guarded(setup)
        if self.session.result_reader.standard_strings:
            text = f"{self.step.banner}{setup.text};"
            self._pending_setup = SetupMessage(text, setup.statements)
        else:  # the server parses a whole message before it executes the first SET in it
            await self.query(setup.text, skip=setup.statements)
        return None

    async def _setup_guarded(self, setup: SetupMessage) -> Outcome | None:
        try:
            await idempotency_guard.ensure(self.session, self.query, self.execute)
            sets = await self.query(setup.text)
        except asyncpg.InsufficientPrivilegeError as error:
            raise self._with_grants(error) from None
        except asyncpg.DivisionByZeroError:
            return await self.preflight_failed()
        return await self._applied_before() if rows_of(sets, setup.guard) else None

    async def _record_guard(self) -> Outcome | None:
        """After the script and before COMMIT; as the login, which owns the table."""
        try:
            text = f"reset role;{idempotency_guard.record(self.task, self.step)}{WITH_ID}"
            sets = await self.query(text)
        except asyncpg.InsufficientPrivilegeError as error:
            raise self._with_grants(error) from None
        if [each.tag for each in sets[:2]] == ["RESET", "INSERT 0 0"]:
            return await self._applied_before()
        self._last = sets
        return None

    async def _applied_before(self) -> Outcome:
        await self.roll_back()
        self.discard_results()
        return await self.succeeded("AlreadyApplied")

    def _with_grants(self, error: asyncpg.InsufficientPrivilegeError) -> Exception:
        """For a right that the guard needs: an error with the GRANT statements."""
        is_guards = any(name in str(error) for name in idempotency_guard.NAMES)
        return idempotency_guard.missing_right(self.session) if is_guards else error

    async def _script(self) -> Outcome | None:
        self.session.result_reader.reset()
        self.stopwatch.begin_phase("running")
        *before, last = self.step.parts
        for part in before:
            self.keep(await self.query_part(part, before=self._take_setup()))
        self._ended = self.step.read_only or self.task.rolls_back
        if self.step.guarded and not self._ended:
            self.keep(await self.query_part(last, before=self._take_setup()))
            return await self._record_guard()
        end = "\n;rollback" if self.task.rolls_back else "\n;commit"
        more = end if self._ended else WITH_ID
        *sets, own = await self.query_part(last, more, self._take_setup(), ends=self._ended)
        self._last = [own]
        self.keep(sets)
        return None

    def _take_setup(self) -> SetupMessage:
        setup, self._pending_setup = self._pending_setup, NO_SETUP
        return setup

    async def _commit(self) -> Outcome | None:
        if self._ended:
            return None
        self.phase = "commit"
        self.stopwatch.begin_phase("committing")
        [[xid, *_], *_] = rows_of(self._last, -1, least=1)
        if not isinstance(xid, int | None):
            raise UnexpectedAnswer("a transaction's id is no number")
        session, xact = self.session, None
        if xid is not None:
            xact = xact_id(xid, session.timeline, session.crash_epoch)
            if (outcome := await self.confirm_intent(xact)) is not None:
                return outcome
        try:
            tag = await self.execute_and_reset("commit")
        except CONNECTION_CLOSED as error:
            return await self._commit_status(error, xact)
        if tag != "COMMIT":
            return await self.rejected_by_us(
                "The target rolled the transaction back instead of committing it.",
                reason="StatementFailed",
                retry=True,
            )
        return None

    async def _not_committed(self, error: BaseException) -> Outcome:
        if not isinstance(error, CONNECTION_CLOSED):
            in_setup = self.session.result_reader.skipping
            if in_setup and isinstance(error, asyncpg.DivisionByZeroError):
                return await self.preflight_failed()
            await self.roll_back()
            return await self.failed(error, undone=True)
        if abort := await self.client_side_abort():
            return abort
        return await self._lost_or_stopped(error)

    async def _lost_or_stopped(self, error: BaseException) -> Outcome:
        """The transaction is known not to be committed."""
        if self.canceller.reason:
            return await self.stopped(safe=True)
        return await self.connection_lost(error, reason="ConnectionLost", retry=True)

    async def _commit_status(self, error: BaseException, xact: str | None) -> Outcome | None:
        """After the connection was lost at COMMIT; None: the transaction is committed."""
        if xact is None:
            return await self._lost_or_stopped(error)
        now = self.session.loop.time()
        timeout = min(max(self.deadline - now, MIN_STATUS_TIMEOUT), MAX_STATUS_TIMEOUT)
        match await commit_status(self.session, xact, now + timeout):
            case "committed":
                return None
            case "aborted":
                return await self._lost_or_stopped(error)
            case _:
                safe = self.step.options.idempotent or self.step.guarded
                lost = await self.connection_lost(error, reason="OutcomeUnknown", retry=safe)
                return ask_next(self, lost)
