"""Exit codes: a contract with scripts, the same for every command."""

from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    SUCCEEDED = 0
    USAGE = 1
    SOME_FAILED = 2
    DIFFERS = 2
    ALL_FAILED = 3
    CANCELED = 4
    WAIT_TIMED_OUT = 5
    NOT_FOUND = 6
    DENIED = 7
    HALTED_OR_UNKNOWN = 8
    INTERRUPTED = 130


MEANINGS = {
    Exit.SUCCEEDED: "all succeeded",
    Exit.USAGE: "usage: the command or the request can't be done as it is, or the API can't be reached",
    Exit.SOME_FAILED: "some targets failed (account doctor: some account needs help; server check: it can't be reached; diff: something differs)",
    Exit.ALL_FAILED: "all targets failed, or there were none",
    Exit.CANCELED: "cancelled, or skipped as a whole",
    Exit.WAIT_TIMED_OUT: "the wait timed out; the run continues",
    Exit.NOT_FOUND: "not found",
    Exit.DENIED: "denied",
    Exit.HALTED_OR_UNKNOWN: "halted, or the outcome of a target is unknown",
    Exit.INTERRUPTED: "Ctrl-C while waiting; the run continues",
}
BY_STATUS = {401: Exit.DENIED, 403: Exit.DENIED, 404: Exit.NOT_FOUND}

ENDED = {
    "Succeeded",
    "SucceededWithSkipped",
    "Failed",
    "TimedOut",
    "Canceled",
    "Skipped",
}
GOOD = {"Succeeded", "SucceededWithSkipped"}
BAD = {"Failed", "TimedOut"}
HALTED = "Halted"
WAITS_FOR_USER = {HALTED, "Gate"}
UNKNOWN = "OutcomeUnknown"


def of_run(summary: dict[str, Any]) -> Exit:
    """The exit code of a run's summary, once the run has ended or halted."""
    lifecycle = summary["lifecycle"]
    reasons = {each["reason"] for each in summary.get("byReason", [])}
    if is_halted(summary) or UNKNOWN in reasons:
        return Exit.HALTED_OR_UNKNOWN
    if lifecycle in GOOD:
        return Exit.SUCCEEDED
    if lifecycle not in BAD:
        return Exit.CANCELED
    some = sum(summary.get("counts", {}).get(each, 0) for each in GOOD)
    return Exit.SOME_FAILED if some else Exit.ALL_FAILED


def is_over(summary: dict[str, Any]) -> bool:
    return summary["lifecycle"] in ENDED


def is_halted(summary: dict[str, Any]) -> bool:
    """Nothing happens until a user decides, or a user ended what had not started."""
    if waits_for_user(summary):
        return True
    return any(each["reason"] == HALTED for each in summary.get("byReason", []))


def waits_for_user(summary: dict[str, Any]) -> bool:
    """Until a resume or an abort."""
    return not is_over(summary) and summary.get("waitReason") in WAITS_FOR_USER
