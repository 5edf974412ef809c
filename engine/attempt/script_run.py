"""The course of an attempt: what is said, what is kept of the answers, and what its end is called."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import asyncpg

from engine.access.errors import CONNECTION_LOST
from engine.attempt import outcome as outcomes
from engine.attempt import transaction_state as state
from engine.attempt.blockers import BlockerWatch
from engine.attempt.cancel_token import TIMED_OUT
from engine.attempt.canceller import CanceledError, Canceller
from engine.attempt.outcome import FAILED, SUCCEEDED, Outcome
from engine.attempt.session_setup import SetupContext, SetupMessage
from engine.attempt.sql_text import literal
from engine.attempt.stopwatch import Stopwatch
from engine.model.task import ScriptPart, Step, Task, values
from engine.pgwire import results
from engine.pgwire.connection import QueryReply
from engine.pgwire.parser import LONGEST
from engine.pgwire.results import ResultReader, ResultSet, UnexpectedAnswer, rows_of
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import InvalidRequest
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

ROLLBACK_LIMIT = 3.0  # seconds
PATIENCE = 5.0  # seconds after which a statement without a lock timeout is looked at
INTERRUPTED, LOCKED, READ_ONLY, SYNTAX_ERROR = "57014", "55P03", "25006", "42601"
Intend = Callable[[str], Awaitable[bool | None]]  # None: nobody could be told in time
REFUSED = (asyncpg.PostgresError, *CONNECTION_LOST)
NOTHING = SetupMessage("", 0)
MOST_COUNTED = 2**63 - 1
TOLD = ("sqlstate", "message", "detail", "hint", "context")


class ScriptRun:
    transactional = True  # the script runs in one transaction

    def __init__(
        self,
        session: PooledConnection,
        task: Task,
        step: Step,
        name: str,
        stop: Canceller,
        watch: Stopwatch,
    ) -> None:
        self.session = session
        self.task = task
        self.step = step
        self.stop = stop
        self.watch = watch
        self.ear: ResultReader | QueryReply = session.ear  # what was heard of it
        self.completed = 0
        self.phase = "run"
        self.left_out: frozenset[str] = frozenset()
        self._kept: list[ResultSet] = []
        self._rows = 0
        self._piece: ScriptPart | None = None
        self._offset = 0  # of its text in what was sent
        patience = (step.lock_timeout or PATIENCE) / 2
        self.name = name
        self._lookout = BlockerWatch(session, name, patience)

    @cached_property
    def values(self) -> dict[str, str]:
        return values(self.task, self.step)

    async def say(self, text: str) -> str:
        self.stop.depart()
        try:
            return await self.session.say(text)
        finally:
            self.stop.land()

    async def say_last(self, text: str) -> str:
        self.stop.depart()
        try:
            return await self.session.say_last(text)
        finally:
            self.stop.land()

    async def ask(self, text: str, *, skip: int = 0) -> list[ResultSet]:
        self.stop.depart()
        try:
            return await self.session.ask(text, skip=skip)
        finally:
            self.stop.land()

    async def ask_piece(
        self,
        piece: ScriptPart,
        more: str = "",
        before: SetupMessage = NOTHING,
        *,
        ends: bool = False,
    ) -> list[ResultSet]:
        """`more` is one statement of ours; `ends`: it ends the transaction."""
        text = self._rendered(piece)
        self._piece, self._offset = piece, len(before.text)
        self._lookout.depart()
        try:
            found = await self.ask(before.text + text + more, skip=before.statements)
        except REFUSED:
            self._check_transaction(
                piece, self.session.ear.sets, state.FAILED_TRANSACTION, ends=ends
            )
            raise
        finally:
            self._lookout.land()
        if more and not found:
            raise UnexpectedAnswer("the last statement was not answered")
        own = found[:-1] if more else found
        self._check_transaction(piece, own, state.IN_TRANSACTION, ends=ends)
        self._piece, self._offset = None, 0
        self.completed += 1
        return found

    def _check_transaction(
        self, piece: ScriptPart, sets: list[ResultSet], status: int, *, ends: bool
    ) -> None:
        """Raises TransactionEnded unless the transaction is the one that was begun for the script."""
        ear = self.session.ear
        expected = status if self.transactional else state.AT_REST
        unknown = (
            ends or self.session.lost or ear.skipping
        )  # nothing of the script ran, or all of it
        savepoint = piece.rolls_back_to_savepoint
        if state.controlled(sets, savepoint=savepoint) or (not unknown and ear.status != expected):
            raise state.TransactionEnded

    def keep(self, found: Iterable[ResultSet]) -> None:
        """They belong to the statement that was completed last."""
        for each in found:
            each.statement = self.completed
            self._rows = min(self._rows + each.touched, MOST_COUNTED)
            if len(self._kept) < results.KEPT_SETS:
                self._kept.append(each)

    def forget(self) -> None:
        """All that was kept of a script that was rolled back."""
        self._kept.clear()
        self._rows = self.completed = 0
        self.session.ear.reset()

    def scene(self, deadline: float) -> SetupContext:
        session = self.session
        left = deadline - session.loop.time()
        return SetupContext(
            self.task,
            self.step,
            self.name,
            left,
            session.watches_client,
            session.preset,
            self.left_out,
        )

    async def leave_out_unknown(self) -> None:
        """Parameters that this server does not have."""
        known, wanted = self.session.parameters, self.step.options.settings.parameters
        names = {name.lower() for name in wanted}
        if new := names - known.keys():
            asked = Q.unknown_parameters.replace("$1", literal(f"{{{','.join(new)}}}"))
            absent = {row[0] for row in rows_of(await self.ask(asked))}
            known |= {name: name not in absent for name in new}
        self.left_out = frozenset(name for name in names if not known[name])

    async def roll_back(self) -> None:
        """The locks are given free before the end is told."""
        session = self.session
        if session.lost or not session.in_transaction:
            return
        try:
            await session.say("rollback", limit=ROLLBACK_LIMIT)
        except (*REFUSED, TimeoutError):
            session.abandon()

    async def obstacle(self) -> Outcome:
        """What the prologue stumbled over."""
        await self.roll_back()
        try:
            [[read_only, *_], *_] = rows_of(await self.ask(Q.writable), least=1)
        except CanceledError:
            return await self.stopped(safe=True)
        except REFUSED as error:
            return await self.broken(error, reason="ConnectionLost", retry=True)
        if read_only == "on" and not self.step.read_only:
            message = "The target takes no writes: it is a standby, or set to read only."
            return await self.refused(message, reason="TargetReadOnly", retry=True)
        message = "An earlier attempt still runs at the target."
        return await self.refused(message, reason="LockTimeout", retry=True)

    async def unless_heard(self) -> Outcome | None:
        """Why we hung up ourselves."""
        if self.session.ear.flooded:
            message = "A statement returned more rows or bytes than can be received."
            return await self.refused(message, reason="ResultTooLarge")
        if self.session.ear.asked_for_data:
            message = "COPY FROM STDIN has nobody at the other end."
            return await self.refused(message, reason="StatementFailed")
        return None

    async def succeeded(self, reason: str | None = None) -> Outcome:
        many = len(self.step.pieces)
        statements = "1 statement" if many == 1 else f"{many} statements"
        text = f"Succeeded: {statements}, {self._rows} row{'s' * (self._rows != 1)}."
        if reason:
            by = "this job" if self.step.options.guard == "job" else "the same run"
            text = f"It was applied before by {by}; nothing was done."
        return await self.ended(lifecycle=SUCCEEDED, reason=reason, last_message=text)

    async def stopped(self, *, safe: bool) -> Outcome:
        reason = self.stop.reason or TIMED_OUT
        blockers = await self._lookout.seen() if reason == TIMED_OUT else []
        return await self.ended(**outcomes.stopped(reason, safe=safe), blockers=blockers)

    async def not_intended(self, *, heard: bool | None) -> Outcome | None:
        """Nothing was committed; None: nobody waits for it any more."""
        await self.roll_back()
        if heard is False:
            return None
        if self.stop.reason:
            return await self.stopped(safe=True)
        return await self.ended(**outcomes.untold())

    async def refused(
        self, message: str, *, reason: str, retry: bool = False, fingerprint: str | None = None
    ) -> Outcome:
        """By us."""
        await self.roll_back()
        return await self.ended(
            lifecycle=FAILED,
            reason=reason,
            retry=retry,
            message=message,
            fingerprint=fingerprint or reason,
        )

    async def broken(self, error: BaseException, *, reason: str, retry: bool) -> Outcome:
        """The connection was lost; what the server said last tells why, if it said something."""
        if error.__cause__ is None and self.phase != "commit":  # a COMMIT is not hindered
            self.session.call_off()
        said = self._said(error.__cause__)
        dialer = self.session.ear.dialer
        given_up = dialer and dialer.refusal
        if isinstance(error, UnexpectedAnswer):
            given_up = f"its answer makes no sense: {error}"
            self.session.abandon()
        why = f"given up: {given_up}" if given_up else "lost"
        said["message"] = said["message"] or f"The connection to the target was {why}."
        return await self.ended(lifecycle=FAILED, reason=reason, retry=retry, **said)

    async def failed(self, error: BaseException, *, undone: bool) -> Outcome:
        """The target refused a statement; `undone`: nothing of the script stays."""
        said = self._said(error)
        sqlstate, retry_on = str(said["sqlstate"]), self.step.options.retry_on
        if sqlstate == INTERRUPTED and (self.stop.reason or self.stop.out_of_time()):
            return await self.stopped(safe=undone or self.step.options.idempotent)
        reason, blockers = "StatementFailed", []
        retry = outcomes.retryable(sqlstate, retry_on)
        if sqlstate == LOCKED:
            reason, blockers = "LockTimeout", await self._lookout.seen()
        elif sqlstate == READ_ONLY and not self.step.read_only:
            reason = "TargetReadOnly"
        elif sqlstate == READ_ONLY:
            retry = sqlstate in retry_on
        may = undone or self.step.options.idempotent
        return await self.ended(
            lifecycle=FAILED, reason=reason, retry=retry and may, blockers=blockers, **said
        )

    async def ended_transaction(self) -> Outcome:
        """Never retried: an idempotent step and a guard rely on the transaction as well."""
        if self.session.lost:
            self.session.call_off()
        await self.roll_back()
        message = "The script began or ended a transaction itself; what it wrote may be committed."
        unknown = {"reason": "OutcomeUnknown", "fingerprint": "OutcomeUnknown"}
        return await self.ended(lifecycle=FAILED, message=message, **unknown)

    async def ended(self, **how: Any) -> Outcome:
        types = await self._type_names() if any(each.foreign for each in self._kept) else {}
        self.watch.turn("")
        ear = self.ear
        how.setdefault("last_message", how.get("message") or "")
        return Outcome(
            notices=[*self._remarks(how.get("sqlstate")), *ear.said()],
            results=[each.told(types, self.task.most_rows) for each in self._kept],
            result_hash=results.digest(self._kept) if self._kept else None,
            rows=self._rows,
            bytes=ear.received,
            statement_no=self.completed or None,
            timings=self.watch.taken,
            cancel_method=self.stop.needed,
            phase=self.phase,
            **how,
        )

    def _remarks(self, sqlstate: str | None) -> Iterator[dict[str, str]]:
        """A syntax error already says why the statements could not be told apart."""
        for name in sorted(self.left_out):
            text = f"The server does not know the parameter {name}: left out."
            yield {"severity": "INFO", "message": text}
        if self.step.whole and sqlstate != SYNTAX_ERROR:
            text = (
                "The script went to the server as a whole: its statements can't be told apart here."
            )
            yield {"severity": "INFO", "message": text}

    def _said(self, error: BaseException | None) -> dict[str, Any]:
        """In the server's words."""
        told = error.as_dict() if isinstance(error, asyncpg.PostgresError) else {}
        said: dict[str, Any] = {name: _short(told.get(name)) for name in TOLD}
        place, piece = str(told.get("position") or ""), self._piece
        if piece and place.isdecimal() and self._offset < int(place[:9]):
            said["position"] = piece.origin(int(place[:9]) - self._offset, self.values)
        if said["sqlstate"]:
            said["fingerprint"] = outcomes.fingerprint(said["sqlstate"], said["message"] or "")
        return said

    def _rendered(self, piece: ScriptPart) -> str:
        """The statements were told apart, and values are put in, for strings as the standard has them."""
        if not self.session.ear.standard_strings and (piece.varies or "\\" in piece.text):
            what = "a variable" if piece.varies else "a backslash"
            message = f"The script turned standard_conforming_strings off and uses {what} after it."
            raise InvalidRequest(message)
        return piece.rendered(self.values) if piece.varies else piece.text

    def close(self) -> None:
        self._lookout.close()

    async def _type_names(self) -> dict[int, str]:
        """Of types that are not PostgreSQL's own; asked once per session."""
        session = self.session
        new = set[int]().union(*(each.foreign for each in self._kept)) - session.types.keys()
        if new and not session.lost and not session.spoiled:
            oids = literal(f"{{{','.join(map(str, new))}}}")
            received = session.ear.received
            with contextlib.suppress(*REFUSED, TimeoutError):
                async with asyncio.timeout(ROLLBACK_LIMIT):
                    rows = rows_of(await session.ask(Q.type_names.replace("$1", oids)), width=2)
                    session.types |= {oid: str(name) for oid, name, *_ in rows}
            session.ear.received = received
        return session.types


def _short(text: object) -> str | None:
    return None if text is None else str(text).replace("\0", "")[:LONGEST]
