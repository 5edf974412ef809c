"""Where and when an attempt ran, and from which statement on its outcome is unknown."""

from typing import Any

from muster.cli import advice
from muster.cli.output import many, when
from muster.cli.runs import Run

AUTOCOMMIT = "autocommit"  # in the place of a transaction's id: each statement commits by itself
UNKNOWN = "OutcomeUnknown"
UNSURE = {UNKNOWN, "HostLost"}  # of these there is more to know than the message


def where(attempt: dict[str, Any]) -> str:
    """What finds it in the target's log and catalogue."""
    parts = []
    if attempt.get("startTime"):
        parts.append(f"began {when(attempt['startTime'])}")
    if attempt.get("backendPid"):
        parts.append(f"pid {attempt['backendPid']}")
    if (xact := attempt.get("xactId")) and xact != AUTOCOMMIT:
        parts.append(f"transaction {xact.partition('@')[0]}")
    if attempt.get("statementNo"):
        parts.append(f"{many(attempt['statementNo'], 'statement')} completed")
    return "".join(f", {each}" for each in parts)


def unsure(run: Run, why: dict[str, Any], attempt: dict[str, Any]) -> list[str]:
    """For an end that leaves a doubt: from where on, and what to do about it."""
    reason = why.get("details", {}).get("endReason")
    if reason not in UNSURE:
        return []
    lines = []
    if reason == UNKNOWN and attempt.get("xactId") == AUTOCOMMIT:
        first = (attempt.get("statementNo") or 0) + 1
        lines = [f"Each statement commits by itself; from statement {first} on it is unknown."]
    hint = advice.of(run, {"reason": reason})
    return [*lines, *([f"→ {hint.hint}"] if hint else [])]
