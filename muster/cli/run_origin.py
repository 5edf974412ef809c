"""Who started a run, who stopped it and what holds it, in one line each."""

import json
from typing import Any

from muster.cli import runs
from muster.cli.output import when

DOORS = {"rest": " over REST", "psql": " in psql", "fsm": " by Muster", "engine": " by the engine"}
ORIGINS = {"rerun": "rerun", "plan": "started from a plan", "system": "started by Muster"}
HELD = {
    "AccountPaused": "the account is paused, and nothing new starts until: muster account resume",
    "JobPaused": "the job is paused, and nothing of it starts until: muster job resume",
}
FORCE = {
    "protocol": "a cancel request",
    "pg_cancel_backend": "pg_cancel_backend",
    "pg_terminate_backend": "pg_terminate_backend",
}


def begun(summary: dict[str, Any]) -> list[str]:
    """By whom, whereby, and which version of the job."""
    origin, actor = summary.get("origin"), summary.get("actor")
    if origin is None:
        return []
    return [_started(summary, origin, actor), *_own(summary)]


def brief(run: dict[str, Any]) -> str | None:
    """The same in a few words, for a list."""
    origin, actor = run.get("origin"), run.get("actor")
    if origin == "slot":
        return "schedule"
    if run.get("rerunOf"):
        return f"rerun of {run['rerunOf'][:8]} by {actor}"
    return f"plan, by {actor}" if origin == "plan" else actor


def followed(summary: dict[str, Any]) -> list[str]:
    """Its reruns."""
    reruns = [each[:8] for each in summary.get("reruns") or []]
    return [f"rerun as {', '.join(reruns)}"] if reruns else []


def _own(summary: dict[str, Any]) -> list[str]:
    """What this run has in place of what its steps say."""
    limit = summary.get("limit")
    values = {
        **({"limit": limit} if limit else {}),
        **(summary.get("overrides") or {}),
    }
    return (
        [
            f"for this run: {', '.join(f'{name} {json.dumps(value)}' for name, value in values.items())}"
        ]
        if values
        else []
    )


def _started(summary: dict[str, Any], origin: str, actor: str | None) -> str:
    version = f", version {summary['jobVersion']}" if summary.get("jobVersion") else ""
    if origin == "slot":
        return f"started by its schedule for {when(summary.get('slot'))}{version}"
    how = ORIGINS.get(origin, "started")
    if summary.get("rerunOf"):
        how = f"rerun of {summary['rerunOf'][:8]}"
    return f"{how} by {actor}{_door(summary)}{version}"


def stopped(shown: dict[str, Any]) -> list[str]:
    """Who wanted it, or a part of it, to stop."""
    return [_cancelled(each) for each in shown.get("cancellations") or []]


def reason(summary: dict[str, Any]) -> str | None:
    """Why it waits or ended, and what to do where that is known."""
    code = summary.get("endReason") or summary.get("waitReason")
    return f"{code}: {HELD[code]}" if code in HELD else code


def _cancelled(each: dict[str, Any]) -> str:
    what = f" {runs.name(each)}" if each.get("targetId") else ""
    step = f" of step {each['stepName']}" if each.get("stepName") and what else ""
    if each.get("stepName") and not what:
        what = f" step {each['stepName']}"
    who = f"by {each.get('requestedBy')}{_door(each)} at {when(each.get('requestedAt'))}"
    why = f": {each['reason']}" if each.get("reason") else ""
    return f"cancelled{what}{step} {who}{why}{_end(each)}"


def _end(each: dict[str, Any]) -> str:
    if not each.get("completedAt"):
        return " (under way)"
    took = FORCE.get(each.get("needed") or "")
    return f" (over at {when(each['completedAt'])}{f', it took {took}' if took else ''})"


def _door(each: dict[str, Any]) -> str:
    return DOORS.get(each.get("door") or "", "")
