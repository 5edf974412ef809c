"""Why targets failed or wait, in the words of a DBA: cause, blocker, and the command to type next."""

import argparse
import shlex
from collections.abc import Callable
from typing import Any, TypeAlias

from muster.cli import fixes, output, runs
from muster.cli.client import Api
from muster.cli.exits import BAD, ENDED, Exit
from muster.cli.output import Table, moment
from muster.cli.progress import code, counted
from muster.cli.runs import Run

OnRun: TypeAlias = Callable[[Api, Run], int]
COLUMNS = ("targets", "retrying", "code", "message", "example", "next")
LOCK_TIMEOUT = "55P03"
WAITING = "Created,WaitingForRetry"
LOOKED_AT = 200  # waiting targets among which reasons are looked for
MOST_ASKED = 10
REASONS = ("reason", "targets", "example", "message")


def read(api: Api, run: Run, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of targets as the API tells them, then those of steps that came to no targets."""
    return [*api.all(f"{run.path}/errors"), *_without_targets(summary)]


def table(run: Run, found: list[dict[str, Any]]) -> Table:
    """One line for each cause; people find the example in the command."""
    rows = [
        [
            each["count"],
            each.get("retrying", 0),
            code(each),
            each.get("message"),
            _example(each),
            fix(run, each),
        ]
        for each in found
    ]
    return Table(COLUMNS, rows, optional=("retrying",), hidden=("example",), whole=("next",))


def fix(run: Run, each: dict[str, Any]) -> str:
    """The command that mends it, or else the one that shows it whole."""
    if known := fixes.of(run, each):
        return known.command
    example = _example(each)
    shown = f"muster run why {run.short}"
    return f"{shown} {shlex.quote(example)}" if example else shown


def advised(run: Run, each: dict[str, Any], group: str) -> list[str]:
    """What mends it, to stand below the line that tells it; nothing where that is not known."""
    known = fixes.of(run, each, group)
    return [f"  → {part}" for part in (known.command, known.hint) if part] if known else []


def total(found: list[dict[str, Any]]) -> str:
    number = sum(each["count"] for each in found)
    return f"{output.many(len(found), 'cause')}, {output.many(number, 'target')}."


def notes(run: Run, found: list[dict[str, Any]]) -> list[str]:
    """The target's own hints, then ours; each once."""
    if not found:
        return ["Nothing went wrong."]
    said = [(code(each), each.get("hint")) for each in found]
    said += [(code(each), known.hint) for each in found if (known := fixes.of(run, each))]
    hints = dict.fromkeys(f"hint for {what}: {hint}" for what, hint in said if hint)
    return [total(found), *hints]


def why_run(api: Api, run: Run, options: argparse.Namespace) -> int:
    """The reasons of all that is not over, each asked about at one example."""
    summary = api.get(f"{run.path}/summary")
    query = {"lifecycle": WAITING, "$top": LOOKED_AT}
    waiting = api.all(f"{run.path}/targets", query) if summary.get("total") else []
    counts = {each["reason"]: each["count"] for each in summary.get("byReason", [])}
    asked, rows = [], []
    for reason, alike in list(_alike(waiting).items())[:MOST_ASKED]:
        told = _why(api, run, alike[0])
        asked.append(told)
        name = told.get("waitReason") or reason
        number = counts.get(reason, len(alike))
        rows.append([name, number, runs.name(alike[0]), told.get("message")])
    if options.output == "table":
        print(f"{run}: {summary['lifecycle']}, {counted(summary)}")
        for line in (line for told in (summary, *summary["steps"]) for line in _reason(told)):
            print(output.clean(line))
        if not rows:
            return Exit.SUCCEEDED
    output.show(options, {"summary": summary, "why": asked}, Table(REASONS, rows))
    return Exit.SUCCEEDED


def why_target(api: Api, run: Run, item: dict[str, Any], options: argparse.Namespace) -> int:
    """What it waits for or came to, and what its newest attempt said."""
    told, newest = _why(api, run, item), newest_attempt(api, run, item)
    if options.output == "table":
        for line in _target_lines(runs.name(item), told, newest):
            print(output.clean(line))
        return Exit.SUCCEEDED
    row = [
        runs.name(item),
        told["lifecycle"],
        told.get("waitReason") or newest.get("endReason"),
        told.get("message"),
        newest.get("attempt"),
        newest.get("sqlstate"),
        newest.get("message"),
        "; ".join(map(blocker, _blockers(told, newest))) or None,
    ]
    columns = (
        "target",
        "lifecycle",
        "reason",
        "message",
        "attempt",
        "sqlstate",
        "error",
        "blockers",
    )
    output.show(options, {**told, "attempt": newest or None}, Table(columns, [row]))
    return Exit.SUCCEEDED


def newest_attempt(api: Api, run: Run, item: dict[str, Any]) -> dict[str, Any]:
    """The newest that is over, if there is one: one that runs has nothing to tell yet."""
    listed = api.get(f"{runs.target_path(run, item)}/attempts")["value"]
    attempts: list[dict[str, Any]] = [each["properties"] for each in listed]
    newest = next((each for each in attempts if each["lifecycle"] in ENDED), None)
    if newest is None:
        return attempts[0] if attempts else {}
    if newest.get("sqlstate") == LOCK_TIMEOUT and not newest.get("blockers"):
        # Nobody looked this time, since every session of the server was needed.
        newest |= {"blockers": next((e["blockers"] for e in attempts if e.get("blockers")), [])}
    return newest


def blocker(each: dict[str, Any]) -> str:
    """The pid and the application of a session that holds the lock."""
    told = [each.get("application_name") or "unnamed"]
    if each.get("state"):
        told.append(each["state"])
    since = f" since {moment(each['since'])}" if each.get("since") else ""
    return f"pid {each.get('pid')} ({', '.join(told)}{since})"


def _target_lines(name: str, told: dict[str, Any], newest: dict[str, Any]) -> list[str]:
    reason = f" ({told['waitReason']})" if told.get("waitReason") else ""
    since = f" since {moment(told['since'])}" if told.get("since") else ""
    lines = [f"{name}: {told['lifecycle']}{reason}{since}"]
    lines += [f"  {told['message']}"] if told.get("message") else []
    if newest:
        lines.append(f"  attempt {newest['attempt']}: {newest['lifecycle']}")
    if newest.get("message"):
        lines.append(f"  {newest.get('sqlstate') or newest.get('endReason')}: {newest['message']}")
    lines += [f"  {key}: {newest[key]}" for key in ("detail", "hint", "context") if newest.get(key)]
    return lines + [f"  blocked by {blocker(each)}" for each in _blockers(told, newest)]


def _blockers(told: dict[str, Any], newest: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of right now where an attempt runs and waits, else those that the newest one saw."""
    return told.get("details", {}).get("blockers") or newest.get("blockers") or []


def _alike(waiting: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By reason; what has none yet, since the engine alone knows it, by server."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in waiting:
        said = each["properties"]
        reason = said.get("waitReason") or (said.get("target") or {}).get("serverName", "")
        found.setdefault(reason, []).append(each)
    return found


def _why(api: Api, run: Run, item: dict[str, Any]) -> dict[str, Any]:
    return api.get(f"{runs.target_path(run, item)}/why")


def _reason(told: dict[str, Any]) -> list[str]:
    reason = told.get("waitReason") or told.get("endReason")
    if not reason:
        return []
    where = f"step {told['stepName']}" if "stepName" in told else "run"
    return [f"  {where}: {reason}. {told.get('lastMessage', '')}".rstrip()]


def _without_targets(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps, or the run itself, that failed for another cause than a target."""
    found = [each for each in summary["steps"] if _failed_itself(each)]
    if not found and _failed_itself(summary):
        found = [summary]
    return [_cause(each) for each in found]


def _failed_itself(told: dict[str, Any]) -> bool:
    return told["lifecycle"] in BAD and not any(told.get("counts", {}).get(bad) for bad in BAD)


def _cause(told: dict[str, Any]) -> dict[str, Any]:
    """In the form of the others."""
    what = {"reason": told.get("endReason"), "message": told.get("lastMessage")}
    step = {"stepName": told["stepName"]} if "stepName" in told else {}
    return {**step, **what, "count": 0, "retrying": 0, "targets": []}


def _example(each: dict[str, Any]) -> str:
    return runs.name(each["targets"][0]) if each.get("targets") else ""
