"""The last phase of an attempt: writes the rows of the script into the output table.

It follows when the script has committed, its verify query holds and the target's session is given back. A failure is
retried by later attempts that begin here: the script is not sent again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
from msgspec.structs import replace

from engine.access.errors import CONNECTION_LOST
from engine.attempt import outcome as outcomes
from engine.attempt.cancel_token import TIMED_OUT
from engine.attempt.canceller import CanceledError
from engine.attempt.executor import ExecutorTask
from engine.attempt.outcome import FAILED, SUCCEEDED, Outcome
from engine.attempt.output_writer import FindPlace, OutputWriter
from engine.attempt.row_spool import RowSpool, SpoolFolder, SpoolLost
from engine.model.step import Step
from engine.model.task import Task
from engine.model.verification import VERIFIED
from engine.pool.errors import Full
from engine.pool.pool import ConnectionPool
from muster.core import telemetry
from muster.core.errors import Fault, Unavailable
from muster.core.failpoints import reach

log = telemetry.get(__name__)

REASON = "OutputFailed"
QUERY_CANCELED = "57014"
TRANSIENT = frozenset({"55P03", "25006"})  # a lock was not granted; the server takes no writes
TRANSIENT_CLASSES = frozenset({"08", "40", "53", "57"})  # of SQLSTATE
INTERNAL = "Muster failed with an internal error; the host's log has the details."
LOST = "its rows are lost: the host that had them on its disk is gone."
APPLIED = "It was applied before, and that attempt's rows are not known: nothing was written to the output."

ReportIntent = Callable[[Task, str], Awaitable[bool | None]]


class OutputPhase:
    def __init__(
        self,
        folder: SpoolFolder,
        find_place: FindPlace,
        pool: ConnectionPool,
        report_intent: ReportIntent,
    ) -> None:
        self._folder = folder
        self._writer = OutputWriter(find_place, pool)
        self._report_intent = report_intent

    def spool(self, task: Task, step: Step) -> RowSpool | None:
        """For the rows of an attempt that sends the script."""
        if step.output is None or task.rolls_back or task.script_outcome is not None:
            return None
        return RowSpool(self._folder, self._folder.path(task, task.attempt))

    async def after(self, entry: ExecutorTask, step: Step, outcome: Outcome) -> Outcome | None:
        """The outcome of the attempt with its output; None: the task was revoked."""
        task = entry.task
        if step.output is None or task.rolls_back:
            return outcome
        path = self._folder.path(task, task.committed_attempt or task.attempt)
        if outcome.lifecycle != SUCCEEDED or outcome.reason in {"AlreadyHolds", "AlreadyApplied"}:
            if not _follows(outcome, task):
                path.unlink(missing_ok=True)
            return _without_rows(outcome, task, step)
        if await self._report_intent(task, VERIFIED) is False:
            return None
        began = asyncio.get_running_loop().time()
        written = await self._written(entry, step, outcome)
        self._folder.written.set()
        milliseconds = round((asyncio.get_running_loop().time() - began) * 1000, 1)
        return replace(written, timings=outcome.timings | {"writing": milliseconds})

    async def _written(self, entry: ExecutorTask, step: Step, outcome: Outcome) -> Outcome:
        task, output = entry.task, step.output
        assert output is not None
        attempt = task.committed_attempt or task.attempt
        try:
            await reach("host.before_output")
            written = await self._writer.write(
                entry, step, self._folder.path(task, attempt), attempt
            )
        except (CanceledError, SpoolLost, Fault, asyncpg.PostgresError, *CONNECTION_LOST) as error:
            return _not_written(outcome, entry, step, error)
        except Exception:
            log.exception("output failed", run=task.job_execution_id, ordinal=task.ordinal)
            return _failed(outcome, {"message": INTERNAL}, retry=True)
        if written is None:
            text = "It returned no result set: nothing was written to the output."
        else:
            rows, schema = written
            text = f"{rows} row{'s' * (rows != 1)} written to {schema}.{output.table_name}."
        return replace(
            outcome, phase="output", last_message=f"{outcome.last_message} {text}".strip()
        )


def resumed() -> Outcome:
    """What an attempt that begins with the output knows about the script."""
    text = "The script succeeded in an earlier attempt."
    return Outcome(lifecycle=SUCCEEDED, phase="output", last_message=text)


def _follows(outcome: Outcome, task: Task) -> bool:
    """A later attempt may need the rows: the script is not sent again, or it is not known yet whether it must be."""
    return bool(task.script_outcome if outcome.checkpoint is None else outcome.checkpoint)


def _without_rows(outcome: Outcome, task: Task, step: Step) -> Outcome:
    """A guard that holds for the run found an earlier attempt, whose outcome was unknown."""
    if outcome.reason != "AlreadyApplied":
        return outcome
    if step.options.guard == "job" and task.attempt == 1:
        return outcome
    return replace(
        outcome, lifecycle=FAILED, reason=REASON, message=APPLIED, last_message=APPLIED,
        fingerprint=REASON, phase="output",
    )  # fmt: skip


def _failed(outcome: Outcome, fields: dict[str, Any], *, retry: bool, **more: Any) -> Outcome:
    fields.pop("position", None)
    message = f"The script succeeded; its output was not written: {fields['message']}"
    changed: dict[str, Any] = {"fingerprint": REASON} | {
        k: v for k, v in fields.items() if v is not None
    }
    changed |= {
        "lifecycle": FAILED, "reason": REASON, "phase": "output", "retry": retry, "message": message,
        "last_message": message, "checkpoint": {"script": VERIFIED},
    }  # fmt: skip
    return replace(outcome, **(changed | more))


def _stopped(outcome: Outcome, entry: ExecutorTask) -> Outcome:
    fields = outcomes.stopped(entry.token.reason or TIMED_OUT, safe=True)
    more = {name: fields[name] for name in ("lifecycle", "again") if name in fields}
    retry = fields.get("retry", False)
    return _failed(outcome, {"message": fields["message"]}, retry=retry, **more)


def _lost(outcome: Outcome, step: Step) -> Outcome:
    """The rows can be had again only where the script may be repeated."""
    again = step.options.idempotent
    more: dict[str, Any] = {"checkpoint": {}} if again else {}
    message = f"The script committed; {LOST}" + " The script is repeated." * again
    return _failed(
        outcome, {"message": ""}, retry=again, message=message, last_message=message, **more
    )


def _not_written(
    outcome: Outcome, entry: ExecutorTask, step: Step, error: BaseException
) -> Outcome:
    if isinstance(error, CanceledError) or _was_stopped(entry, error):
        return _stopped(outcome, entry)
    if isinstance(error, SpoolLost):
        return _lost(outcome, step)
    fields, retry = _cause(error, step.options.retry_on)
    if isinstance(error, asyncpg.PostgresError) and step.output is not None:
        fields["message"] += f" (output: {step.output.table})"
    return _failed(outcome, fields, retry=retry)


def _was_stopped(entry: ExecutorTask, error: BaseException) -> bool:
    late = asyncio.get_running_loop().time() >= entry.deadline
    state = getattr(error, "sqlstate", None)
    kind = isinstance(error, Full | asyncpg.PostgresConnectionError) or state == QUERY_CANCELED
    return kind and (entry.token.reason is not None or late)


def _cause(error: BaseException, retry_on: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
    """Fields of the outcome, and whether another attempt may succeed."""
    if isinstance(error, Fault):
        detail = error.server_message if isinstance(error, Full) else error.detail
        fields: dict[str, Any] = {"message": error.message, "sqlstate": error.sqlstate}
        fields |= {"detail": detail or None, "fingerprint": error.code}
        return fields, isinstance(error, Unavailable)
    lost = not isinstance(error, asyncpg.PostgresError) or isinstance(
        error, asyncpg.PostgresConnectionError
    )
    fields = outcomes.error_fields(error.__cause__ if lost else error)
    if lost:
        fields["message"] = fields["message"] or "The connection to the output's server was lost."
        return fields, True
    state = str(fields["sqlstate"])
    transient = state in TRANSIENT or state[:2] in TRANSIENT_CLASSES
    return fields, transient or not {state, state[:2]}.isdisjoint(retry_on)
