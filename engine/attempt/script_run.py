"""The base of an attempt: sends statements, keeps results, builds the outcome, phase after phase."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import asyncpg

from engine.access.errors import CONNECTION_LOST
from engine.attempt import outcome as outcomes
from engine.attempt import spooling
from engine.attempt import transaction_state as state
from engine.attempt.blockers import BlockerWatch
from engine.attempt.cancel_token import TIMED_OUT
from engine.attempt.canceller import CanceledError, Canceller
from engine.attempt.kept_results import KeptResults
from engine.attempt.outcome import FAILED, SUCCEEDED, Outcome
from engine.attempt.row_spool import RowSpool
from engine.attempt.session_setup import SetupContext, SetupMessage
from engine.attempt.sql_text import literal
from engine.attempt.stopwatch import Stopwatch
from engine.model.sqlstates import retryable
from engine.model.step import ScriptPart, Step
from engine.model.task import Task, variable_values
from engine.pgwire.errors import UnexpectedAnswer
from engine.pgwire.pipeline import QueryReply
from engine.pgwire.result_set import ResultSet, rows_of
from engine.pgwire.results import ResultReader
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import InvalidRequest
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

ROLLBACK_TIMEOUT = 3.0  # seconds
LONG_WAIT = 5.0  # seconds: after half of it blockers are looked for, where there is no lock timeout
QUERY_CANCELED, LOCK_NOT_AVAILABLE, READ_ONLY, SYNTAX_ERROR = "57014", "55P03", "25006", "42601"
STATEMENT_ERRORS = (asyncpg.PostgresError, *CONNECTION_LOST)
NO_SETUP = SetupMessage("", 0)

T = TypeVar("T")
Phase = Callable[[], Awaitable[Outcome | None]]


class IntentRefused(Exception):  # noqa: N818 - an event, not an error
    """The task was revoked before its transaction could commit: nothing is reported."""


class ScriptRun:
    transactional = True  # the script runs in one transaction

    def __init__(
        self,
        session: PooledConnection,
        task: Task,
        step: Step,
        name: str,
        canceller: Canceller,
        stopwatch: Stopwatch,
        *,
        deadline: float = 0.0,
        report_intent: Callable[[str], Awaitable[bool | None]] | None = None,
        spool: RowSpool | None = None,
    ) -> None:
        self.session = session
        self.task = task
        self.step = step
        self.canceller = canceller
        self.stopwatch = stopwatch
        self.deadline = deadline
        self.report_intent = report_intent
        self.spool = spool  # of a step with an output
        self.reply: ResultReader | QueryReply = session.result_reader
        self.completed = 0  # statements
        self.phase = "run"  # as an outcome names it
        self.unknown_parameters: frozenset[str] = frozenset()
        self._kept = KeptResults(session)
        self._part: ScriptPart | None = None  # that was sent last
        self._offset = 0  # of its text in the message
        self.name = name  # application_name
        wait = (step.lock_timeout or LONG_WAIT) / 2
        self._blocker_watch = BlockerWatch(session, name, wait)

    @property
    def phases(self) -> Sequence[Phase]:
        """In their order; a task of a batch has none. Phases `verify` and `output` follow `commit`."""
        return ()

    async def run_phases(self) -> Outcome | None:
        """None: the commit intent was refused, and everything was rolled back."""
        try:
            for phase in self.phases:
                if (outcome := await phase()) is not None:
                    return outcome
        except IntentRefused:
            return None
        return await self.succeeded()

    @cached_property
    def values(self) -> dict[str, str]:
        return variable_values(self.task, self.step)

    async def _send(self, send: Callable[..., Awaitable[T]], text: str, **options: int) -> T:
        self.canceller.mark_sent()
        try:
            return await send(text, **options)
        finally:
            self.canceller.mark_answered()

    async def execute(self, text: str) -> str:
        return await self._send(self.session.execute, text)

    async def execute_and_reset(self, text: str) -> str:
        return await self._send(self.session.execute_and_reset, text)

    async def query(self, text: str, *, skip: int = 0) -> list[ResultSet]:
        return await self._send(self.session.query, text, skip=skip)

    async def query_part(
        self,
        part: ScriptPart,
        more: str = "",
        before: SetupMessage = NO_SETUP,
        *,
        ends: bool = False,
    ) -> list[ResultSet]:
        """`more` is one statement of ours; `ends`: it ends the transaction."""
        text = self._rendered(part)
        self._part, self._offset = part, len(before.text)
        try:
            with self._blocker_watch, spooling.attached(self, own_last=bool(more)):
                sets = await self.query(before.text + text + more, skip=before.statements)
        except STATEMENT_ERRORS:
            answered = self.session.result_reader.sets
            self._check_transaction(part, answered, state.FAILED_TRANSACTION, ends=ends)
            raise
        if more and not sets:
            raise UnexpectedAnswer("the last statement was not answered")
        own = sets[:-1] if more else sets
        self._check_transaction(part, own, state.IN_TRANSACTION, ends=ends)
        self._part, self._offset = None, 0
        self.completed += 1
        return sets

    def _check_transaction(
        self, part: ScriptPart, sets: list[ResultSet], status: int, *, ends: bool
    ) -> None:
        """Raises TransactionEnded unless the transaction is the one that the setup began."""
        reader = self.session.result_reader
        expected = status if self.transactional else state.IDLE
        # Nothing of the script ran, or all of it.
        unknown = ends or self.session.lost or reader.skipping
        wrong_status = not unknown and reader.status != expected
        if state.controlled(sets, savepoint=part.rolls_back_to_savepoint) or wrong_status:
            raise state.TransactionEnded

    def keep(self, sets: Iterable[ResultSet]) -> None:
        """The result sets of the statement that was completed last."""
        self._kept.add(sets, self.completed)

    def discard_results(self) -> None:
        """After the script was rolled back."""
        self._kept.clear()
        self.completed = 0
        self.session.result_reader.reset()

    @property
    def setup_context(self) -> SetupContext:
        session = self.session
        return SetupContext(
            self.task,
            self.step,
            self.name,
            self.deadline - session.loop.time(),
            session.watches_client,
            session.preset,
            self.unknown_parameters,
        )

    async def find_unknown_parameters(self) -> None:
        """Parameters of the step's settings that this server does not have; they are left out."""
        exists = self.session.parameters
        names = {name.lower() for name in self.step.options.settings.parameters}
        if new := names - exists.keys():
            query = Q.unknown_parameters.replace("$1", literal(f"{{{','.join(new)}}}"))
            absent = {row[0] for row in rows_of(await self.query(query))}
            exists |= {name: name not in absent for name in new}
        self.unknown_parameters = frozenset(name for name in names if not exists[name])

    async def roll_back(self) -> None:
        """Releases the locks before the outcome is reported."""
        session = self.session
        if session.lost or not session.in_transaction:
            return
        try:
            await session.execute("rollback", limit=ROLLBACK_TIMEOUT)
        except (*STATEMENT_ERRORS, TimeoutError):
            session.abandon()

    async def preflight_failed(self) -> Outcome:
        """The check at the end of the setup divided by zero: asks why."""
        await self.roll_back()
        try:
            [[read_only, *_], *_] = rows_of(await self.query(Q.writable), least=1)
        except CanceledError:
            return await self.stopped(safe=True)
        except STATEMENT_ERRORS as error:
            return await self.connection_lost(error, reason="ConnectionLost", retry=True)
        if read_only == "on" and not self.step.read_only:
            message = "The target takes no writes: it is a standby, or set to read only."
            return await self.rejected_by_us(message, reason="TargetReadOnly", retry=True)
        message = "An earlier attempt still runs at the target."
        return await self.rejected_by_us(message, reason="LockTimeout", retry=True)

    async def client_side_abort(self) -> Outcome | None:
        """The outcome if we closed the connection because of a reply that can't be received."""
        if self.session.result_reader.limit_exceeded:
            message = "A statement returned more rows or bytes than can be received."
            return await self.rejected_by_us(message, reason="ResultTooLarge")
        if self.session.result_reader.copy_in_requested:
            message = "COPY FROM STDIN has no data: a script can't provide any."
            return await self.rejected_by_us(message, reason="StatementFailed")
        return await spooling.failed(self)

    async def succeeded(self, reason: str | None = None) -> Outcome:
        count = len(self.step.parts)
        rows = self._kept.rows
        text = f"Succeeded: {count} statement{'s' * (count != 1)}, {rows} row{'s' * (rows != 1)}."
        if reason:
            by = "this job" if self.step.options.guard == "job" else "the same run"
            text = f"It was applied before by {by}; nothing was done."
        return await self.ended(lifecycle=SUCCEEDED, reason=reason, last_message=text)

    async def stopped(self, *, safe: bool) -> Outcome:
        reason = self.canceller.reason or TIMED_OUT
        blockers = await self._blocker_watch.blockers() if reason == TIMED_OUT else []
        return await self.ended(**outcomes.stopped(reason, safe=safe), blockers=blockers)

    async def confirm_intent(self, xact_id: str) -> Outcome | None:
        """None: the control database has recorded the intent, and the transaction may commit."""
        assert self.report_intent is not None
        recorded = await self.report_intent(xact_id)
        return None if recorded else await self.commit_intent_failed(recorded=recorded)

    async def commit_intent_failed(self, *, recorded: bool | None) -> Outcome:
        await self.roll_back()
        if recorded is False:
            raise IntentRefused
        if self.canceller.reason:
            return await self.stopped(safe=True)
        return await self.ended(**outcomes.intent_not_recorded())

    async def rejected_by_us(
        self, message: str, *, reason: str, retry: bool = False, fingerprint: str | None = None
    ) -> Outcome:
        await self.roll_back()
        return await self.ended(
            lifecycle=FAILED,
            reason=reason,
            retry=retry,
            message=message,
            fingerprint=fingerprint or reason,
        )

    async def connection_lost(self, error: BaseException, *, reason: str, retry: bool) -> Outcome:
        """With the last error of the server, if it sent one."""
        if error.__cause__ is None and self.phase != "commit":  # never cancels a COMMIT
            self.session.cancel_statement()
        fields = self._error_fields(error.__cause__)
        dialer = self.session.result_reader.dialer
        refusal = dialer and dialer.refusal
        if isinstance(error, UnexpectedAnswer):
            refusal = f"its reply makes no sense: {error}"
            self.session.abandon()
        how = f"given up: {refusal}" if refusal else "lost"
        fields["message"] = fields["message"] or f"The connection to the target was {how}."
        return await self.ended(lifecycle=FAILED, reason=reason, retry=retry, **fields)

    async def failed(self, error: BaseException, *, undone: bool) -> Outcome:
        """The target refused a statement; `undone`: no effect of the script stays."""
        fields = self._error_fields(error)
        sqlstate, retry_on = str(fields["sqlstate"]), self.step.options.retry_on
        stopping = self.canceller.reason or self.canceller.out_of_time()
        if sqlstate == QUERY_CANCELED and stopping:
            return await self.stopped(safe=undone or self.step.options.idempotent)
        reason, blockers = "StatementFailed", []
        retry = retryable(sqlstate, retry_on)
        if sqlstate == LOCK_NOT_AVAILABLE:
            reason, blockers = "LockTimeout", await self._blocker_watch.blockers()
        elif sqlstate == READ_ONLY and not self.step.read_only:
            reason = "TargetReadOnly"
        elif sqlstate == READ_ONLY:
            retry = sqlstate in retry_on
        safe = undone or self.step.options.idempotent
        return await self.ended(
            lifecycle=FAILED, reason=reason, retry=retry and safe, blockers=blockers, **fields
        )

    async def ended_transaction(self) -> Outcome:
        """Never retried: an idempotent step and a guard rely on the transaction as well."""
        if self.session.lost:
            self.session.cancel_statement()
        await self.roll_back()
        message = "The script began or ended a transaction itself; what it wrote may be committed."
        unknown = {"reason": "OutcomeUnknown", "fingerprint": "OutcomeUnknown"}
        return await self.ended(lifecycle=FAILED, message=message, **unknown)

    async def ended(self, **fields: Any) -> Outcome:
        results = await self._kept.as_json(self.task.max_rows)
        self.stopwatch.begin_phase("")
        fields.setdefault("last_message", fields.get("message") or "")
        return Outcome(
            notices=[*self._remarks(fields.get("sqlstate")), *self.reply.all_notices()],
            results=results,
            result_hash=self._kept.digest,
            rows=self._kept.rows,
            rows_affected=None if self._undone_by(fields) else self._kept.rows_affected,
            bytes=self.reply.received,
            statement_no=self.completed or None,
            timings=self.stopwatch.milliseconds,
            cancel_method=self.canceller.method,
            phase=self.phase,
            **fields,
        )

    def _undone_by(self, fields: dict[str, Any]) -> bool:
        """Whether, by these fields of the outcome, no change of the script stays."""
        committed = fields["lifecycle"] == SUCCEEDED or self.phase == "verify"
        may_be = committed or fields.get("reason") == "OutcomeUnknown" or not self.transactional
        return self.task.rolls_back or not may_be

    def _remarks(self, sqlstate: str | None) -> Iterator[dict[str, str]]:
        """A syntax error already explains why the script could not be split."""
        for name in sorted(self.unknown_parameters):
            text = f"The server does not know the parameter {name}: left out."
            yield {"severity": "INFO", "message": text}
        if self.step.whole and sqlstate != SYNTAX_ERROR:
            text = "The script was sent as a whole: it can't be split into statements."
            yield {"severity": "INFO", "message": text}

    def _error_fields(self, error: BaseException | None) -> dict[str, Any]:
        fields = outcomes.error_fields(error)
        position, part = fields.pop("position", ""), self._part
        if part and position.isdecimal() and self._offset < int(position):
            fields["position"] = part.origin(int(position) - self._offset, self.values)
        return fields

    def _rendered(self, part: ScriptPart) -> str:
        """The script is split, and values are quoted, for standard_conforming_strings = on."""
        if not self.session.result_reader.standard_strings and (part.varies or "\\" in part.text):
            what = "a variable" if part.varies else "a backslash"
            message = f"The script turned standard_conforming_strings off and uses {what} after it."
            raise InvalidRequest(message)
        return part.rendered(self.values) if part.varies else part.text

    def close(self) -> None:
        self._blocker_watch.close()
