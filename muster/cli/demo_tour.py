"""What the demo shows, step by step, by the commands that a user types; each promise is checked."""

import asyncio
import secrets
import shlex
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.cli import causes, exits, main, progress, run_watch, runs
from muster.cli.announce import announced
from muster.cli.client import Api
from muster.cli.demo_fleet import ADMIN, APPLICATION, Fleet
from muster.cli.exits import Exit
from muster.core.db import Connection
from muster.core.files import write_private
from muster.core.settings import Secret

STAGE_LIMIT = 120.0  # seconds
SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-00000000d340"
GROUP = SUBSCRIPTION + "/resourceGroups/demo"
SERVERS = GROUP + "/providers/Microsoft.Sql/servers"
NAMES = ("fleet-1", "fleet-2", "fleet-3")
ACCOUNT = f"{SERVERS}/fleet-1/jobAgents/demo"
HERE = {"location": "local"}

NIGHTLY = """\
alter table orders add column if not exists total_cents bigint;
update orders set total_cents = round(price * quantity * 100) where total_cents is null"""
FIX = "alter table orders add column quantity integer not null default 1"
REVENUE = "select count(*) as orders, round(sum(total_cents) / 100.0, 2) as revenue from orders"
REPAIR = ("exec", "-g", "drifted", "-c", FIX, "--write", "--yes", "--expect-targets", "1")
MISSING_COLUMN = "42703"


class Wrong(Exception):  # noqa: N818 - what the demo promised and did not see
    pass


@dataclass(frozen=True)
class Place:
    """Where the stack is."""

    folder: Path
    url: str
    token: str
    database_url: str

    @property
    def token_file(self) -> Path:
        return self.folder / "secrets" / "token"

    @property
    def password_file(self) -> Path:
        return self.folder / "secrets" / "demo-password"


def walk(place: Place, api: Api) -> None:
    """Raises Wrong where the outcome is not the announced one."""
    with asyncio.Runner() as loop:
        fleet = _build(place, api, loop)
        drifted, held = fleet.tenants[26], fleet.tenants[47]
        loop.run(fleet.drift(drifted))
        session = loop.run(fleet.hold(held))
        try:
            _define(place)
            first = _run_until_two_are_left(api, session, str(drifted), str(held))
            _say(f"{APPLICATION} ends its transaction: {held} continues by itself.")
        finally:
            loop.run(session.close())
        _finish(api, first)
        _mend(api, drifted.server, drifted.database)


def _build(place: Place, api: Api, loop: asyncio.Runner) -> Fleet:
    """Servers at the same time, then the tenants while the account gets its engine."""
    began = time.monotonic()
    if not place.password_file.exists():
        write_private(place.password_file, secrets.token_urlsafe(16))
    password = Secret(place.password_file.read_text(encoding="utf-8"))
    api.put(SUBSCRIPTION, {"displayName": "Demo"})
    api.put(GROUP, HERE)
    login = {"administratorLogin": ADMIN, "administratorLoginPassword": password.reveal()}
    with ThreadPoolExecutor(len(NAMES)) as pool:
        body = {**HERE, "properties": login}
        with announced("\nMaking three PostgreSQL servers"):
            made = list(pool.map(lambda name: api.put(f"{SERVERS}/{name}", body), NAMES))
        _say(f"Three PostgreSQL servers ({time.monotonic() - began:.1f} s)")
        endpoints = {each["name"]: each["properties"]["endpoint"] for each in made}
        fleet = Fleet(place.database_url, password, endpoints)
        with announced("\nMaking the tenant databases and the job account"):
            account = pool.submit(_account, api)
            loop.run(fleet.furnish())
            account.result()
    count = len(fleet.tenants)
    _say(f"{count} tenant databases, a job account ({time.monotonic() - began:.1f} s)")
    return fleet


def _account(api: Api) -> None:
    control = f"{SERVERS}/fleet-1/databases/jobs"
    api.put(control, HERE)
    api.put(ACCOUNT, {**HERE, "properties": {"databaseId": control}})


def _define(place: Place) -> None:
    """All by the commands that a user types."""
    file = str(place.password_file)
    _muster("credential", "set", "fleet-login", "--username", ADMIN, "--password-file", file)
    servers = [word for name in NAMES for word in ("--server", name)]
    inside = ["--exclude-database", "fleet-1/jobs", "--credential", "fleet-login", "--replace"]
    _muster("group", "create", "tenants", *servers, *inside)
    how = ["--lock-timeout", "2s", "--retry-interval", "1s", "--retry-maximum", "3s"]
    more = ["--retry-attempts", "30", "--replace"]
    _muster("job", "create", "nightly", "-g", "tenants", "-c", NIGHTLY, *how, *more)


def _run_until_two_are_left(api: Api, session: Connection, drifted: str, held: str) -> runs.Run:
    _type("job", "start", "nightly", "--wait")
    run = runs.of_item(ACCOUNT, api.post(f"{ACCOUNT}/jobs/nightly/start"))
    show = progress.chosen(run, sys.stdout)
    summary = run_watch.follow(api, run, show, timeout=STAGE_LIMIT, until=_only_two_are_left)
    counts = summary["counts"]
    _expect(counts.get("Failed") == 1, f"one tenant fails, not {counts.get('Failed', 0)}")
    _expect(counts.get("WaitingForRetry") == 1, "one tenant waits for its next attempt")

    _muster("run", "errors", "nightly")
    causes_by_state = {each.get("sqlstate"): each for each in api.all(f"{run.path}/errors")}
    _expect(
        set(causes_by_state) == {MISSING_COLUMN, causes.LOCK_TIMEOUT},
        "there are two causes, one each",
    )
    _say("How to fix them:")
    _print_fixes(causes_by_state)
    for sqlstate, name in ((MISSING_COLUMN, drifted), (causes.LOCK_TIMEOUT, held)):
        cause = causes_by_state[sqlstate]
        _expect(cause["count"] == 1, f"{sqlstate} happens once")
        _expect(runs.name(cause["targets"][0]) == name, f"{sqlstate} happens at {name}")
    _expect(
        causes_by_state[MISSING_COLUMN]["targets"][0]["attempts"] == 1, "a drift is not retried"
    )

    blockers = _blockers(api, run, held)
    _muster("run", "why", "nightly", held)
    named = [(each["pid"], each["application_name"]) for each in blockers]
    wanted = (session.get_server_pid(), APPLICATION)
    _expect(named == [wanted], f"the blocker is {wanted}, not {named}")
    return run


def _print_fixes(causes_by_state: dict[Any, dict[str, Any]]) -> None:
    """One line for each cause."""
    fixes = {
        MISSING_COLUMN: f"muster {shlex.join(REPAIR)}",
        causes.LOCK_TIMEOUT: f"nothing: it continues when {APPLICATION} ends its transaction",
    }
    for sqlstate, each in causes_by_state.items():
        print(f"  {each['count']} × {sqlstate} {each['message']}\n    → {fixes[sqlstate]}")


def _blockers(api: Api, run: runs.Run, held: str) -> list[dict[str, Any]]:
    """An attempt looks for them when the server has a session to spare, so perhaps not the first."""
    item, until = runs.target(api, run, held), time.monotonic() + STAGE_LIMIT
    while time.monotonic() < until:
        if blockers := causes.newest_attempt(api, run, item).get("blockers"):
            return list(blockers)
        time.sleep(0.2)
    raise Wrong(f"The demo failed: there is no sign of what blocks {held}.")


def _only_two_are_left(summary: dict[str, Any]) -> bool:
    """58 are done, one failed for good, one waits; or the run has ended, which is wrong here."""
    waits = summary.get("counts", {}).get("WaitingForRetry", 0)
    nearly = summary.get("total", 0) - summary.get("done", 0) == 1
    return (bool(summary.get("total")) and nearly and waits == 1) or exits.is_over(summary)


def _finish(api: Api, run: runs.Run) -> None:
    _muster("run", "watch", "nightly", expect=Exit.SOME_FAILED)
    counts = api.get(f"{run.path}/summary")["counts"]
    _expect(counts == {"Succeeded": 59, "Failed": 1}, f"59 succeed and 1 fails, not {counts}")
    _muster("run", "errors", "nightly")


def _mend(api: Api, server: str, database: str) -> None:
    _say("The drifted tenant gets its column, through Muster as well; then the job runs again.")
    one = ["--database", f"{server}/{database}", "--credential", "fleet-login", "--replace"]
    _muster("group", "create", "drifted", *one)
    _muster(*REPAIR)
    _muster("job", "start", "nightly", "--wait")
    run = runs.find(api, ACCOUNT, "nightly")
    counts = api.get(f"{run.path}/summary")["counts"]
    _expect(counts == {"Succeeded": 60}, f"all 60 succeed, not {counts}")
    _muster("exec", "-g", "tenants", "-c", REVENUE, "--head", "10")


def _muster(*words: str, expect: Exit = Exit.SUCCEEDED) -> None:
    _type(*words)
    code = main.main(words)
    _expect(code == expect, f"`muster {words[0]} {words[1]}` exits with {expect}, not {code}")


def _type(*words: str) -> None:
    print(f"\n$ muster {shlex.join(words)}", flush=True)


def _say(text: str) -> None:
    print(f"\n{text}", flush=True)


def _expect(holds: bool, what: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not holds:
        raise Wrong(f"The demo failed: {what}.")
