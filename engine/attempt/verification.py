"""Asks a step's verify query: before the script, after its commit or a guard that found it applied, or first when an
earlier attempt ran the script.

A script that committed is not repeated: what is known about it is the target's checkpoint in the control database, and
the next attempt begins with the verify query.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import asyncpg
from msgspec.structs import replace

from engine.attempt import outcome as outcomes
from engine.attempt import session_setup
from engine.attempt.cancel_token import CANCELED, TIMED_OUT
from engine.attempt.canceller import CanceledError
from engine.attempt.outcome import FAILED, SUCCEEDED, Outcome
from engine.attempt.script_run import (
    LOCK_NOT_AVAILABLE,
    QUERY_CANCELED,
    IntentRefused,
    Phase,
    ScriptRun,
)
from engine.attempt.transaction_state import IDLE
from engine.model.task import Task
from engine.model.verification import COMMITTED, UNKNOWN, Verify, VerifyReply, received
from engine.pgwire.errors import CONNECTION_CLOSED, UnexpectedAnswer
from engine.pgwire.parser import text
from engine.pgwire.result_set import TYPES, ResultSet, row_values
from muster.core.failpoints import reach

FAILED_REASON, NOT_ANSWERED = "VerifyFailed", "VerifyNotAnswered"
OUTCOME_UNKNOWN = "OutcomeUnknown"
TRANSIENT_CLASSES = frozenset({"08", "40", "53", "57"})  # of SQLSTATE
BOOLEAN_OID = 16
BOOLEANS = {b"t": "true", b"f": "false"}
SCRIPT = {
    COMMITTED: "The script committed",
    UNKNOWN: "Whether the script committed is unknown",
}
REASONS = {COMMITTED: NOT_ANSWERED, UNKNOWN: OUTCOME_UNKNOWN}


class Unanswered(NamedTuple):
    """Why the verify query has no answer."""

    fields: dict[str, Any]  # of an Outcome: at least `message`
    transient: bool = False
    stopped: bool = False  # by the canceller


class FirstRow:
    """A sink for a verify query: keeps the first row, as text."""

    def reset(self) -> None: ...
    def begin(self, result: ResultSet, size: int) -> None: ...

    def row(self, result: ResultSet, body: bytes) -> None:
        if not result.rows:
            oids = [oid for _, oid in result.columns or ()]
            result.rows.append(
                row_values(body, [_boolean if oid == BOOLEAN_OID else text for oid in oids])
            )


def with_verification(run: ScriptRun, phases: Sequence[Phase]) -> Sequence[Phase]:
    """The phases of an attempt whose script has these phases."""
    verify = run.step.options.verify
    return phases if verify is None else Verification(run, verify).around(phases)


def ask_next(run: ScriptRun, outcome: Outcome) -> Outcome:
    """After an outcome that is unknown: the next attempt, which does not count, begins with the verify query."""
    stopped = run.canceller.reason in {CANCELED, TIMED_OUT}
    if run.step.options.verify is None or outcome.reason != OUTCOME_UNKNOWN or stopped:
        return outcome
    message = f"{(outcome.message or '').rstrip('.')}. The verify query follows."
    return replace(
        outcome, again=True, checkpoint=_checkpoint(UNKNOWN), message=message, last_message=message
    )


def not_asked(outcome: Outcome, task: Task) -> Outcome:
    """The outcome of an attempt that could not connect to ask the verify query first."""
    if task.script_outcome is None:
        return outcome
    message = f"{SCRIPT[task.script_outcome]}; its verify query was not asked: {outcome.message}"
    reason = REASONS[task.script_outcome]
    return replace(outcome, reason=reason, message=message, last_message=message)


class Verification:
    def __init__(self, run: ScriptRun, verify: Verify) -> None:
        self._run = run
        self._verify = verify
        self._query = ""  # with the values of the variables

    def around(self, phases: Sequence[Phase]) -> Sequence[Phase]:
        task = self._run.task
        if task.script_outcome is not None:
            return self._render, self._ask_first
        before = (self._skip_if_holds,) if self._verify.skip_if_holds else ()
        if task.rolls_back:
            return self._render, *before, *phases
        scripted = [self._after_guard(phase) for phase in phases]
        return self._render, *before, *scripted, self._after_commit

    async def _render(self) -> Outcome | None:
        """Before anything is sent: a variable without a value must not be noticed after the commit."""
        self._query = self._run.step.verify_query.rendered(self._run.values)
        return None

    async def _skip_if_holds(self) -> Outcome | None:
        """A query that fails does not hold: the script may create what the query reads."""
        run = self._run
        reply = await self._ask()
        if isinstance(reply, VerifyReply):
            if not self._verify.holds(reply):
                return None
            message = f"The verify query holds: {received(reply)}. Nothing was done."
            return await run.ended(lifecycle=SUCCEEDED, reason="AlreadyHolds", last_message=message)
        if reply.stopped:
            return await run.stopped(safe=True)
        if not reply.transient and not run.session.lost:
            return None
        fields = reply.fields | {"message": f"Before the script: {reply.fields['message']}"}
        return await run.ended(lifecycle=FAILED, reason=NOT_ANSWERED, retry=True, **fields)

    def _after_guard(self, phase: Phase) -> Phase:
        """The same phase; a script that the guard found applied is not sent, and its effect may be gone since."""

        async def asked() -> Outcome | None:
            outcome = await phase()
            if outcome is None or outcome.reason != "AlreadyApplied":
                return outcome
            self._begin()
            return await self._judge() or outcome

        return asked

    async def _after_commit(self) -> Outcome | None:
        run = self._run
        self._begin()
        await reach("host.before_verify")
        assert run.report_intent is not None
        if await run.report_intent(COMMITTED) is False:
            raise IntentRefused
        return await self._judge()

    def _begin(self) -> None:
        self._run.phase = "verify"
        self._run.stopwatch.begin_phase("verifying")

    async def _judge(self) -> Outcome | None:
        """After a script that committed, in this attempt or before; None: the query holds."""
        run = self._run
        if not await self._clean_session():
            message = f"{SCRIPT[COMMITTED]}; the verify query follows on another connection."
            return await run.ended(
                lifecycle=FAILED,
                again=True,
                reason=NOT_ANSWERED,
                message=message,
                fingerprint=NOT_ANSWERED,
                checkpoint=_checkpoint(COMMITTED),
            )
        reply = await self._ask()
        await reach("host.verified")
        if isinstance(reply, VerifyReply) and self._verify.holds(reply):
            return None
        return await self._not_verified(reply, COMMITTED)

    async def _ask_first(self) -> Outcome | None:
        """An earlier attempt sent the script; it is not sent in this one."""
        run, script = self._run, self._run.task.script_outcome
        assert script is not None
        self._begin()
        await reach("host.before_verify")
        reply = await self._ask(locked=script == UNKNOWN)
        await reach("host.verified")
        if not isinstance(reply, VerifyReply) or not self._verify.holds(reply):
            return await self._not_verified(reply, script)
        message = f"{SCRIPT[script]} in an earlier attempt; the verify query holds."
        reason = "VerifiedAfterUnknown" if script == UNKNOWN else None
        return await run.ended(lifecycle=SUCCEEDED, reason=reason, last_message=message)

    async def _not_verified(self, reply: VerifyReply | Unanswered, script: str) -> Outcome:
        run, options = self._run, self._run.step.options
        if isinstance(reply, VerifyReply):
            # Without the effect, an unknown outcome is a failure like any other.
            known = {"retry": True, "checkpoint": {}} if script == UNKNOWN else {}
            message = (
                f"{SCRIPT[script]}; its verify query does not hold:"
                f" {self._verify.expected} expected, {received(reply)} returned."
            )
            fields = {"message": message, "fingerprint": FAILED_REASON} | known
            return await run.ended(lifecycle=FAILED, reason=FAILED_REASON, **fields)
        message = f"{SCRIPT[script]}; its verify query was not answered: {reply.fields['message']}"
        fields = {"fingerprint": NOT_ANSWERED} | reply.fields | {"message": message}
        fields["checkpoint"] = _checkpoint(script)
        if reply.stopped:
            reason = run.canceller.reason or TIMED_OUT
            stopped = outcomes.stopped(reason, safe=True)
            return await run.ended(**stopped | fields | {"reason": REASONS[script]})
        if reply.transient:
            return await run.ended(lifecycle=FAILED, reason=REASONS[script], retry=True, **fields)
        if script == UNKNOWN and (options.idempotent or run.step.guarded):
            fields |= {"retry": True, "checkpoint": {}}
        reason = OUTCOME_UNKNOWN if script == UNKNOWN else FAILED_REASON
        return await run.ended(lifecycle=FAILED, reason=reason, **fields)

    async def _clean_session(self) -> bool:
        """After the script: whether the session is as a new one."""
        session = self._run.session
        if session.lost or session.unusable:
            return False
        if session.reset_result is None:
            await session.reset()
        elif not await asyncio.shield(session.reset_result):
            session.unusable = True
        return not session.lost and not session.unusable

    async def _ask(self, *, locked: bool = False) -> VerifyReply | Unanswered:
        run, reader = self._run, self._run.session.result_reader
        sink, reader.sink = reader.sink, FirstRow()
        try:
            return await self._reply(locked=locked)
        except CanceledError:
            return self._stopped()
        except CONNECTION_CLOSED as error:
            return self._lost(error)
        except asyncpg.PostgresError as error:
            await run.roll_back()
            return self._failed(error)
        finally:
            reader.sink = sink

    async def _reply(self, *, locked: bool) -> VerifyReply:
        """Takes one round trip."""
        run = self._run
        if run.step.options.settings.parameters:
            await run.find_unknown_parameters()
        context = run.setup_context
        left = min(context.left, float(self._verify.timeout_seconds))
        setup = session_setup.verify_setup(context._replace(left=left), locked=locked)
        if run.session.result_reader.standard_strings:
            whole, skip = f"{setup.text};{self._query}\n;rollback", setup.statements
        else:  # the server parses a whole message before it executes the first SET in it
            await run.query(setup.text, skip=setup.statements)
            whole, skip = f"{self._query}\n;rollback", 0
        sets = await run.query(whole, skip=skip)
        if [each.tag for each in sets[1:]] != [
            "ROLLBACK"
        ] or run.session.result_reader.status != IDLE:
            raise UnexpectedAnswer("a verify query was not answered by one result")
        result = sets[0]
        types = [TYPES.get(oid, "") for _, oid in result.columns or ()]
        return VerifyReply(result.count, types, result.rows[0] if result.rows else ())

    def _stopped(self) -> Unanswered:
        reason = self._run.canceller.reason or TIMED_OUT
        return Unanswered({"message": outcomes.STOP_MESSAGES[reason]}, stopped=True)

    def _lost(self, error: BaseException) -> Unanswered:
        run = self._run
        if run.canceller.reason:
            return self._stopped()
        run.session.abandon()
        if run.session.result_reader.limit_exceeded:
            return Unanswered({"message": "It returned more rows or bytes than can be received."})
        fields = outcomes.error_fields(error.__cause__)
        fields.pop("position", None)
        fields["message"] = fields["message"] or "The connection to the target was lost."
        return Unanswered(fields, transient=True)

    def _failed(self, error: asyncpg.PostgresError) -> Unanswered:
        run, fields = self._run, outcomes.error_fields(error)
        fields.pop("position", None)
        state = str(fields["sqlstate"])
        if state == QUERY_CANCELED and (run.canceller.reason or run.canceller.out_of_time()):
            return self._stopped()
        if state == QUERY_CANCELED:
            fields["message"] = (
                f"{fields['message']} (timeoutSeconds: {self._verify.timeout_seconds})"
            )
        retry_on = run.step.options.retry_on
        transient = state == LOCK_NOT_AVAILABLE or state[:2] in TRANSIENT_CLASSES
        return Unanswered(
            fields, transient=transient or not {state, state[:2]}.isdisjoint(retry_on)
        )


def _checkpoint(script: str) -> dict[str, str]:
    return {"script": script}


def _boolean(value: bytes) -> str:
    return BOOLEANS.get(value) or text(value)
