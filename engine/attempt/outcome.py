"""The outcome of an attempt, as the control database records it."""

import re
from hashlib import sha256
from typing import Any, Self

import asyncpg
from msgspec import Struct

from engine.attempt.cancel_token import CANCELED, HOST_STOPPED, TIMED_OUT
from engine.model.sqlstates import retryable
from engine.pgwire.parser import MAX_FIELD_LENGTH
from muster.core.errors import Fault, Unavailable

ERROR_FIELDS = ("sqlstate", "message", "detail", "hint", "context")
SUCCEEDED, FAILED = "Succeeded", "Failed"
BROKEN_OFF = "BrokenOff"
CONNECT_REASONS = {
    code: code
    for code in (
        "ScriptRefused",
        "ClientKeyUnreadable",
        "CredentialMissing",
        "CredentialNotForServer",
        "CredentialUnreadable",
        "TargetNotAllowed",
        "TransactionModeNotPossible",
    )
}
STOP_MESSAGES = {
    HOST_STOPPED: "The host that ran it was stopped.",
    TIMED_OUT: "It did not end within the step's time.",
    CANCELED: "It was cancelled.",
}
QUOTED_NAMES = re.compile(r"\"[^\"]*\"|'[^']*'|«[^»]*»|„[^“]*“|“[^”]*”|`[^']*'")
NUMBERS = re.compile(r"[0-9]+")


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task_result, as SQL names that type, without the task's key."""

    lifecycle: str
    phase: str
    # Known not to be committed, and another attempt may succeed: of a target that timed out, in the run's next attempt.
    retry: bool = False
    again: bool = False  # stopped by us: another attempt follows, and this one does not count
    reason: str | None = None
    sqlstate: str | None = None
    message: str | None = None
    detail: str | None = None
    hint: str | None = None
    context: str | None = None
    position: int | None = None  # in characters of the script, from 1
    fingerprint: str | None = None
    notices: list[dict[str, str]] = []
    results: list[dict[str, Any]] = []
    result_hash: str | None = None
    rows: int = 0
    rows_affected: int | None = None  # None: no statement was of a kind that changes rows
    bytes: int = 0
    statement_no: int | None = None  # the last that completed
    timings: dict[str, float] = {}  # milliseconds
    blockers: list[dict[str, Any]] = []
    last_message: str = ""
    cancel_method: str | None = None  # what stopped the attempt
    checkpoint: dict[str, str] | None = None  # where the next attempt begins; None: as before

    @classmethod
    def of_connect(cls, fault: Fault, retry_on: tuple[str, ...] = ()) -> Self:
        """No session could be opened, for another reason than a full server."""
        state = fault.sqlstate
        return cls(
            lifecycle=FAILED,
            retry=retryable(state, retry_on) if state else isinstance(fault, Unavailable),
            reason=CONNECT_REASONS.get(fault.code, "ConnectFailed"),
            sqlstate=state,
            message=fault.message,
            detail=fault.detail or None,
            fingerprint=fault.code,
            last_message=fault.message,
            phase="connect",
        )

    @classmethod
    def start_unconfirmed(cls) -> Self:
        """The task is recorded as started, but the host did not receive the reply: nothing was sent."""
        fields = stopped(HOST_STOPPED, safe=True)
        message = "The reply to its start was lost; nothing was sent."
        return cls(phase="connect", **fields | {"message": message, "last_message": message})

    @classmethod
    def internal_error(cls, *, unknown: bool) -> Self:
        """`unknown`: COMMIT may have been sent."""
        message = "Muster failed with an internal error; the host's log has the details."
        if unknown:
            message += " Whether it committed is not known."
        reason = "OutcomeUnknown" if unknown else "InternalError"
        return cls(
            lifecycle=FAILED,
            reason=reason,
            message=message,
            fingerprint=reason,
            last_message=message,
            phase="run",
        )


def stopped(reason: str, *, safe: bool) -> dict[str, Any]:
    """The outcome of an attempt that was stopped; `safe`: the script can run again."""
    match reason:
        case "HostStopped" if safe:
            fields = {"lifecycle": CANCELED, "again": True, "reason": HOST_STOPPED}
            return fields | {"message": STOP_MESSAGES[reason]}
        case "HostStopped":
            message = "The host that ran it was stopped; what was committed before stays."
            return {"lifecycle": FAILED, "reason": "OutcomeUnknown", "message": message}
        case "TimedOut":
            fields = {"lifecycle": TIMED_OUT, "reason": TIMED_OUT, "retry": safe}
            return fields | {"message": STOP_MESSAGES[reason]}
        case _:
            return {"lifecycle": CANCELED, "reason": CANCELED, "message": STOP_MESSAGES[reason]}


def intent_not_recorded() -> dict[str, Any]:
    """The outcome of an attempt whose commit intent was not recorded in time."""
    message = "The control database did not record the commit in time; nothing was committed."
    return stopped(HOST_STOPPED, safe=True) | {"message": message}


def error_fields(error: BaseException | None) -> dict[str, Any]:
    """The fields of a server's error, with its position as text; all are None for any other exception."""
    received = error.as_dict() if isinstance(error, asyncpg.PostgresError) else {}
    fields: dict[str, Any] = {name: _shortened(received.get(name)) for name in ERROR_FIELDS}
    if received.get("position"):
        fields["position"] = str(received["position"])[:9]
    if fields["sqlstate"]:
        fields["fingerprint"] = fingerprint(fields["sqlstate"], fields["message"] or "")
    return fields


def _shortened(text: object) -> str | None:
    return None if text is None else str(text).replace("\0", "")[:MAX_FIELD_LENGTH]


def fingerprint(sqlstate: str, message: str) -> str:
    """Equal for equal causes: quoted names and numbers are ignored."""
    bare = NUMBERS.sub("#", QUOTED_NAMES.sub("?", message))
    return f"{sqlstate}:{sha256(bare.encode()).hexdigest()[:12]}"
