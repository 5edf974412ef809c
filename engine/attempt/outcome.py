"""How an attempt ended, in the words that the control database records."""

import re
from hashlib import sha256
from typing import Any, Self

from msgspec import Struct

from engine.attempt.cancel_token import CANCELED, HOST_STOPPED, TIMED_OUT
from muster.core.errors import Fault, Unavailable

SUCCEEDED, FAILED = "Succeeded", "Failed"
BROKEN_OFF = "BrokenOff"
NOT_RETRIED = frozenset({"42", "28", "22", "23"})  # classes of SQLSTATE
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
WISHES = {  # why an attempt was to stop
    HOST_STOPPED: "The host that ran it was stopped.",
    TIMED_OUT: "It did not end within the step's time.",
    CANCELED: "It was cancelled.",
}
NAMES = re.compile(r"\"[^\"]*\"|'[^']*'|«[^»]*»|„[^“]*“|“[^”]*”|`[^']*'")
NUMBERS = re.compile(r"[0-9]+")


class Outcome(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Written as an element of report's results, without its key."""

    lifecycle: str
    phase: str
    retry: bool = False  # known not to have committed, and worth another try
    again: bool = False  # stopped by us: the next attempt does not count
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
    bytes: int = 0
    statement_no: int | None = None  # the last that was completed
    timings: dict[str, float] = {}  # milliseconds
    blockers: list[dict[str, Any]] = []
    last_message: str = ""
    cancel_method: str | None = None  # what it took to stop it

    @classmethod
    def of_connect(cls, fault: Fault, retry_on: tuple[str, ...] = ()) -> Self:
        """No session was to be had, and it was not for want of room."""
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
    def unheard(cls) -> Self:
        """It started, and the answer was lost: nothing was sent."""
        what = stopped(HOST_STOPPED, safe=True)
        what["message"] = what["last_message"] = (
            "The answer to its start was lost; nothing was sent."
        )
        return cls(phase="connect", **what)

    @classmethod
    def broken(cls, *, unknown: bool) -> Self:
        """A mistake of ours; `unknown`: COMMIT may have been sent."""
        message = "Something went wrong inside Muster; the host's log has more."
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
    """What a wish to stop makes of an attempt; `safe`: it can be made anew."""
    match reason:
        case "HostStopped" if safe:
            what = {"lifecycle": CANCELED, "again": True, "reason": HOST_STOPPED}
            return what | {"message": WISHES[reason]}
        case "HostStopped":
            message = "The host that ran it was stopped; what was committed before stays."
            return {"lifecycle": FAILED, "reason": "OutcomeUnknown", "message": message}
        case "TimedOut":
            return {"lifecycle": TIMED_OUT, "reason": TIMED_OUT, "message": WISHES[reason]}
        case _:
            return {"lifecycle": CANCELED, "reason": CANCELED, "message": WISHES[reason]}


def untold() -> dict[str, Any]:
    """What becomes of an attempt whose COMMIT nobody could be told of."""
    message = "The control database could not be told in time; nothing was committed."
    return stopped(HOST_STOPPED, safe=True) | {"message": message}


def retryable(sqlstate: str, retry_on: tuple[str, ...]) -> bool:
    return sqlstate in retry_on or sqlstate[:2] in retry_on or sqlstate[:2] not in NOT_RETRIED


def fingerprint(sqlstate: str, message: str) -> str:
    """Equal for equal causes: names in quotes and numbers do not count."""
    bare = NUMBERS.sub("#", NAMES.sub("?", message))
    return f"{sqlstate}:{sha256(bare.encode()).hexdigest()[:12]}"
