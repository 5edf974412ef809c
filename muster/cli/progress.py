"""Shows the progress of a run: a block that redraws itself, or one line for each change."""

import sys
from datetime import datetime
from typing import Any, Protocol, TextIO

from muster.cli import output, runs
from muster.cli.exits import ENDED, GOOD
from muster.cli.runs import Run
from muster.core.settings import surroundings

WIDEST_BAR = 40
MOST_NAMED = 4  # running targets, and causes of failure
ORDER = (
    "Succeeded",
    "SucceededWithSkipped",
    "Skipped",
    "InProgress",
    "WaitingForRetry",
    "Created",
    "Failed",
    "TimedOut",
    "Canceled",
)
OTHERWISE = {
    "Failed": "failed",
    "TimedOut": "timed out",
    "Canceled": "cancelled",
    "Skipped": "skipped",
}
# Of these the SQLSTATE says only how it was done, or what had been before.
WITHOUT_STATE = {"TimedOut", "Canceled", "OutcomeUnknown", "HostLost"}
UP, WIPE = "\x1b[{}A", "\x1b[J"


class Show(Protocol):
    wants_names: bool  # whether running targets, causes and the pace are shown at all

    def update(
        self, summary: dict[str, Any], running: list[dict[str, Any]], causes: list[dict[str, Any]]
    ) -> None: ...


class Silent:
    wants_names = False

    def update(
        self, summary: dict[str, Any], running: list[dict[str, Any]], causes: list[dict[str, Any]]
    ) -> None:
        pass


class Lines:
    """For logs: what changed, in one line."""

    wants_names = False

    def __init__(self, run: Run, stream: TextIO) -> None:
        self._run = run
        self._stream = stream
        self._last = ""

    def update(
        self, summary: dict[str, Any], running: list[dict[str, Any]], causes: list[dict[str, Any]]
    ) -> None:
        del running, causes
        text = line(self._run, summary)
        if text != self._last:
            print(text, file=self._stream, flush=True)
        self._last = text


class Block:
    """For a terminal: drawn over itself."""

    wants_names = True

    def __init__(self, run: Run, stream: TextIO) -> None:
        self._run = run
        self._stream = stream
        self._height = 0

    def update(
        self, summary: dict[str, Any], running: list[dict[str, Any]], causes: list[dict[str, Any]]
    ) -> None:
        width = (output.room(self._stream) or 80) - 1
        lines = block(self._run, summary, running, causes, width, filled=_filled(self._stream))
        back = UP.format(self._height) + "\r" + WIPE if self._height else ""
        self._stream.write(back + "\n".join(lines) + "\n")
        self._stream.flush()
        self._height = len(lines)


def chosen(run: Run, stream: TextIO) -> Show:
    return Block(run, stream) if _redraws(stream) else Lines(run, stream)


def line(run: Run, summary: dict[str, Any]) -> str:
    return f"{run} {output.lifecycle(summary['lifecycle'])} {counted(summary)}"


def counted(summary: dict[str, Any]) -> str:
    text = f"{summary.get('done', 0)}/{summary.get('total', 0)}"
    return " ".join([text, *(f"{name}={n}" for name, n in _counts(summary))])


def sentence(summary: dict[str, Any]) -> str:
    """How it went, over all targets of all steps; what the API says where there were none."""
    counts, total = summary.get("counts", {}), summary.get("total", 0)
    if not total:
        return str(summary.get("lastMessage") or "There were no targets.")
    good = sum(counts.get(each, 0) for each in GOOD)
    what = "target executions" if several(summary) else "targets"
    parts = [f"{good} of {total} {what} succeeded"]
    parts += [f"{counts[each]} {word}" for each, word in OTHERWISE.items() if counts.get(each)]
    return ", ".join(parts) + "."


def block(
    run: Run,
    summary: dict[str, Any],
    running: list[dict[str, Any]],
    causes: list[dict[str, Any]],
    width: int,
    *,
    filled: str = "█░",
) -> list[str]:
    """Lines no longer than `width`."""
    done, total = summary.get("done", 0), summary.get("total", 0)
    share = done / total if total else 0.0
    parts = [f"{done}/{total}", f"{share:4.0%}"]
    if (steps := summary.get("stepCount", 1)) > 1:
        parts.append(f"step {len(summary['steps'])} of {steps}")
    if rate := summary.get("ratePerSecond"):
        parts.append(f"{rate:.1f}/s")
    if (left := summary.get("etaSeconds")) is not None:
        parts.append(f"ETA {span(left)}")
    room = max(10, min(WIDEST_BAR, width - len("  ".join(parts)) - 4))
    lines = [
        f"{run}  {output.lifecycle(summary['lifecycle'])}",
        f"{bar(share, room, filled)}  {'  '.join(parts)}",
        " · ".join(f"{name} {n}" for name, n in _counts(summary)) or "no targets yet",
    ]
    if (reason := summary.get("waitReason")) and summary["lifecycle"] not in ENDED:
        lines.append(f"waits    {reason}")
    if running and summary["lifecycle"] not in ENDED:
        names = ", ".join(runs.name(each) for each in running[:MOST_NAMED])
        more = summary.get("counts", {}).get("InProgress", 0) - MOST_NAMED
        lines.append(f"running  {names}{f', … {more} more' if more > 0 else ''}")
    lines += [f"{_kind(each)}  {cause(each)}" for each in causes[:MOST_NAMED]]
    return [output.cut(output.clean(each), width) for each in lines]


def bar(share: float, width: int, filled: str = "█░") -> str:
    full = int(share * width)
    return filled[0] * full + filled[1] * (width - full)


def cause(each: dict[str, Any]) -> str:
    """One cause in one line: how many, what, where for instance."""
    where = f" ({runs.name(each['targets'][0])})" if each.get("targets") else ""
    number = f"{each['count']} × " if each["count"] else ""  # a step can fail without a target
    return f"{number}{code(each)} {message(each) or ''}{where}"


def message(each: dict[str, Any]) -> str | None:
    """With its place in the script where that is known."""
    if not each.get("line"):
        return each.get("message")
    return f"line {each['line']}, column {each['column']}: {each.get('message') or ''}"


def code(each: dict[str, Any]) -> str:
    """SQLSTATE where PostgreSQL said one and it was the cause, else the reason."""
    reason = each.get("reason") or ""
    return str(reason if reason in WITHOUT_STATE else each.get("sqlstate") or reason)


def several(summary: dict[str, Any]) -> bool:
    """Whether each target may be there more than once, for as many steps."""
    return len(summary.get("steps", [])) > 1


def took(part: dict[str, Any]) -> str | None:
    """How long a run, a step or a target took from its start to its end."""
    if not (part.get("startTime") and part.get("endTime")):
        return None
    start, end = (datetime.fromisoformat(part[name]) for name in ("startTime", "endTime"))
    seconds = (end - start).total_seconds()
    return f"{seconds:.1f} s" if seconds < 10 else span(seconds)


def span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def _counts(summary: dict[str, Any]) -> list[tuple[str, int]]:
    counts = summary.get("counts", {})
    return [(output.lifecycle(name), counts[name]) for name in ORDER if counts.get(name)]


def _kind(each: dict[str, Any]) -> str:
    return "retrying" if each.get("retrying") == each["count"] else "failed  "


def _redraws(stream: TextIO) -> bool:
    return stream.isatty() and surroundings().get("TERM") != "dumb"


def _filled(stream: TextIO) -> str:
    encoding = (stream.encoding or sys.getdefaultencoding()).lower()
    return "█░" if "utf" in encoding else "#."
