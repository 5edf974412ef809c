"""Why targets failed or wait: cause, blocker, and the command to type next."""

import argparse
import shlex
from collections.abc import Callable
from typing import Any, TypeAlias

from muster.cli import advice, attempts, output, run_origin, runs
from muster.cli.client import Api
from muster.cli.exits import BAD, ENDED, Exit
from muster.cli.known import Lookup
from muster.cli.output import Table, when
from muster.cli.progress import code, counted, message, several
from muster.cli.runs import Run

OnRun: TypeAlias = Callable[[Api, Run], int]
COLUMNS = ("targets", "retrying", "code", "message", "example", "next")
LOCK_TIMEOUT = "55P03"
WAITING, RUNNING = "Created,WaitingForRetry", "InProgress"
LOST = "HostLost"
LOOKED_AT = 200  # waiting targets among which reasons are looked for
MOST_ASKED = 10
REASONS = ("reason", "targets", "example", "message")


def read(api: Api, run: Run, summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of targets as the API lists them, then those of steps that have no targets."""
    return [*api.all(f"{run.path}/errors"), *_without_targets(summary)]


def table(run: Run, causes: list[dict[str, Any]], summary: dict[str, Any], lookup: Lookup) -> Table:
    """One line for each cause; people find the example in the command."""
    rows = [
        [
            each["count"],
            each.get("retrying", 0),
            code(each),
            message(each),
            _example(each),
            fix(run, each, lookup, with_step=several(summary)),
        ]
        for each in causes
    ]
    return Table(COLUMNS, rows, optional=("retrying",), hidden=("example",), whole=("next",))


def fix(run: Run, each: dict[str, Any], lookup: Lookup, *, with_step: bool) -> str:
    """The command that fixes it, or else the one that shows it whole; as it is typed."""
    hint, example = advice.of(run, each, lookup), _example(each)
    if hint and hint.command:
        return hint.command
    words = ["muster", "run", "why", run.short, *([example] if example else [])]
    if example and with_step:
        words += ["--step", each["targets"][0]["stepName"]]
    return shlex.join(words)


def advised(run: Run, each: dict[str, Any], lookup: Lookup) -> list[str]:
    """The fix, for the line below the cause; nothing if none is known."""
    hint = advice.of(run, each, lookup)
    return [f"  → {part}" for part in (hint.command, hint.hint) if part] if hint else []


def total(causes: list[dict[str, Any]], summary: dict[str, Any]) -> str:
    number = sum(each["count"] for each in causes)
    what = "target execution" if several(summary) else "target"
    return f"{output.many(len(causes), 'cause')}, {output.many(number, what)}."


def notes(run: Run, causes: list[dict[str, Any]], summary: dict[str, Any]) -> list[str]:
    """The target's own hints, then ours, each once; then who stopped it."""
    if not causes:
        return [_nothing(summary), *run_origin.stopped(summary)]
    code_hints = [(code(each), each.get("hint")) for each in causes]
    code_hints += [
        (code(each), advised_hint.hint) for each in causes if (advised_hint := advice.of(run, each))
    ]
    hints = dict.fromkeys(f"hint for {what}: {hint}" for what, hint in code_hints if hint)
    return [total(causes, summary), *hints, *run_origin.stopped(summary)]


def _nothing(summary: dict[str, Any]) -> str:
    match summary["lifecycle"]:
        case "Canceled":
            return "Nothing failed; it was cancelled."
        case over if over in ENDED:
            return "Nothing went wrong."
        case _:
            return "Nothing went wrong so far."


def why_run(api: Api, run: Run, options: argparse.Namespace) -> int:
    """The reasons of all that is not over, each asked about at one example."""
    summary = api.get(f"{run.path}/summary")
    counts = {each["reason"]: each["count"] for each in summary.get("byReason", [])}
    questions, rows = [], []
    for reason, alike in list(_alike(_waiting(api, run, summary, counts)).items())[:MOST_ASKED]:
        why = _why(api, run, alike[0])
        questions.append(why)
        name = why.get("waitReason") or reason
        number = counts.get(reason, len(alike))
        rows.append([name, number, runs.name(alike[0]), why.get("message")])
    if output.is_for_people(options):
        print(f"{run}: {output.lifecycle(summary['lifecycle'])}, {counted(summary)}")
        lines = [line for part in (summary, *summary["steps"]) for line in _reason(part)]
        for line in (*lines, *(f"  {each}" for each in run_origin.stopped(summary))):
            print(output.clean(line))
        if not rows:
            return Exit.SUCCEEDED
    output.show(options, {"summary": summary, "why": questions}, Table(REASONS, rows))
    return Exit.SUCCEEDED


def why_target(api: Api, run: Run, item: dict[str, Any], options: argparse.Namespace) -> int:
    """What it waits for or came to, and what its newest attempt said."""
    why, newest = _why(api, run, item), newest_attempt(api, run, item)
    if output.is_for_people(options):
        for line in _target_lines(run, runs.name(item), why, newest):
            print(output.clean(line))
        return Exit.SUCCEEDED
    row = [
        runs.name(item),
        why["lifecycle"],
        _end_or_wait(why) or newest.get("endReason"),
        why.get("message"),
        newest.get("attempt"),
        newest.get("sqlstate"),
        newest.get("message"),
        "; ".join(map(blocker, _blockers(why, newest))) or None,
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
    output.show(options, {**why, "attempt": newest or None}, Table(columns, [row]))
    return Exit.SUCCEEDED


def newest_attempt(api: Api, run: Run, item: dict[str, Any]) -> dict[str, Any]:
    """The newest finished attempt, if there is one: a running one has no outcome yet."""
    listed = api.get(f"{runs.target_path(run, item)}/attempts")["value"]
    attempts: list[dict[str, Any]] = [each["properties"] for each in listed]
    newest = next((each for each in attempts if each["lifecycle"] in ENDED), None)
    if newest is None:
        return attempts[0] if attempts else {}
    if newest.get("sqlstate") == LOCK_TIMEOUT and not newest.get("blockers"):
        # Not checked this time, since every session of the server was needed.
        newest |= {"blockers": next((e["blockers"] for e in attempts if e.get("blockers")), [])}
    return newest


def blocker(each: dict[str, Any]) -> str:
    """The pid and the application of a session that holds the lock."""
    what = [each.get("application_name") or "unnamed"]
    if each.get("state"):
        what.append(each["state"])
    since = f" since {when(each['since'])}" if each.get("since") else ""
    return f"pid {each.get('pid')} ({', '.join(what)}{since})"


def _target_lines(run: Run, name: str, why: dict[str, Any], newest: dict[str, Any]) -> list[str]:
    code = _end_or_wait(why)
    reason = f" ({code})" if code else ""
    since = f" since {when(why['since'])}" if why.get("since") else ""
    lines = [f"{name}: {output.lifecycle(why['lifecycle'])}{reason}{since}"]
    lines += [f"  {why['message']}"] if why.get("message") else []
    if newest:
        state = output.lifecycle(newest["lifecycle"])
        lines.append(f"  attempt {newest['attempt']}: {state}{attempts.where(newest)}")
    if newest.get("message"):
        lines.append(f"  {newest.get('sqlstate') or newest.get('endReason')}: {newest['message']}")
    lines += [f"  {key}: {newest[key]}" for key in ("detail", "hint", "context") if newest.get(key)]
    lines += [f"  {line}" for line in attempts.unsure(run, why, newest)]
    lines += [f"  {line}" for line in run_origin.stopped(why)]
    return lines + [f"  blocked by {blocker(each)}" for each in _blockers(why, newest)]


def _end_or_wait(why: dict[str, Any]) -> str | None:
    """The target's own reason: its last attempt may have had another one."""
    reason: str | None = why.get("waitReason") or why.get("details", {}).get("endReason")
    return reason


def _blockers(why: dict[str, Any], newest: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of right now where an attempt runs and waits, else those that the newest one saw."""
    return why.get("details", {}).get("blockers") or newest.get("blockers") or []


def _waiting(
    api: Api, run: Run, summary: dict[str, Any], counts: dict[str, int]
) -> list[dict[str, Any]]:
    """What is not over and waits; of what seems to run only what lost its host."""
    if not summary.get("total"):
        return []
    targets = api.all(f"{run.path}/targets", {"lifecycle": WAITING, "$top": LOOKED_AT})
    if counts.get(LOST):
        running = api.all(f"{run.path}/targets", {"lifecycle": RUNNING, "$top": LOOKED_AT})
        targets += [each for each in running if each["properties"].get("waitReason") == LOST]
    return targets


def _alike(waiting: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By reason; what has none yet, since the engine alone knows it, by server."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for each in waiting:
        properties = each["properties"]
        reason = properties.get("waitReason") or (properties.get("target") or {}).get(
            "serverName", ""
        )
        groups.setdefault(reason, []).append(each)
    return groups


def _why(api: Api, run: Run, item: dict[str, Any]) -> dict[str, Any]:
    return api.get(f"{runs.target_path(run, item)}/why")


def _reason(part: dict[str, Any]) -> list[str]:
    reason = run_origin.reason(part)
    if not reason:
        return []
    where = f"step {part['stepName']}" if "stepName" in part else "run"
    return [f"  {where}: {reason}. {part.get('lastMessage', '')}".rstrip()]


def _without_targets(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Steps, or the run itself, that failed for another cause than a target."""
    steps = [each for each in summary["steps"] if _failed_itself(each)]
    if not steps and _failed_itself(summary):
        steps = [summary]
    return [_cause(each) for each in steps]


def _failed_itself(part: dict[str, Any]) -> bool:
    return part["lifecycle"] in BAD and not any(part.get("counts", {}).get(bad) for bad in BAD)


def _cause(part: dict[str, Any]) -> dict[str, Any]:
    """In the form of the others."""
    what = {"reason": part.get("endReason"), "message": part.get("lastMessage")}
    step = {"stepName": part["stepName"]} if "stepName" in part else {}
    return {**step, **what, "count": 0, "retrying": 0, "targets": []}


def _example(each: dict[str, Any]) -> str:
    return runs.name(each["targets"][0]) if each.get("targets") else ""
