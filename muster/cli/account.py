"""`muster account …`: a customer of the REST API."""

import argparse
import sys
from typing import TYPE_CHECKING, Any

from muster.core.settings import surroundings

if TYPE_CHECKING:
    import httpx

VERSION = {"api-version": "2025-01-01"}


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    account = commands.add_parser("account", help="look after job accounts")
    verbs = account.add_subparsers(dest="verb", required=True, metavar="VERB")
    doctor = verbs.add_parser(
        "doctor", help="why an account is slow, stuck or failed, and what to do"
    )
    doctor.add_argument("account", metavar="NAME", help="name or resource id of the account")
    doctor.add_argument("--url", help="of the API; default: MUSTER_URL or http://127.0.0.1:8080")


def run(options: argparse.Namespace) -> int:
    import httpx  # late: `muster engine` parses the same command line and needs none of it

    environ = surroundings()
    url = options.url or environ.get("MUSTER_URL") or "http://127.0.0.1:8080"
    token = environ.get("MUSTER_TOKEN")
    if not token:
        print("muster account: set MUSTER_TOKEN to a token of the API", file=sys.stderr)
        return 1
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=url, headers=headers, params=VERSION, timeout=30) as api:
            return _doctor(api, options.account)
    except httpx.TransportError as error:
        print(f"muster account: {url} does not answer: {error}", file=sys.stderr)
        return 1


def _doctor(api: "httpx.Client", account: str) -> int:
    found = [account] if account.startswith("/") else _by_name(api, account)
    if not found:
        print(f"muster account: there is no account '{account}'", file=sys.stderr)
        return 6
    worst = 0
    for path in found:
        answer = api.post(f"{path}/doctor")
        if answer.is_error:
            error = answer.json()["error"]
            print(f"muster account: {error['code']}: {error['message']}", file=sys.stderr)
            return 7 if answer.status_code == 403 else 6 if answer.status_code == 404 else 1
        told = answer.json()
        print("\n".join(_lines(path, told)))
        worst = max(worst, 0 if told["healthy"] else 2)
    return worst


def _by_name(api: "httpx.Client", name: str) -> list[str]:
    """Every account of that name that the token can see."""
    found: list[str] = []
    for subscription in api.get("/subscriptions").raise_for_status().json()["value"]:
        servers = api.get(
            f"{subscription['id']}/providers/Microsoft.Sql/servers"
        ).raise_for_status()
        for server in servers.json()["value"]:
            accounts = api.get(f"{server['id']}/jobAgents").raise_for_status().json()["value"]
            found += [each["id"] for each in accounts if each["name"].lower() == name.lower()]
    return found


def _lines(path: str, told: dict[str, Any]) -> list[str]:
    lines = [
        f"{path.rsplit('/', 1)[-1]}: {told['state']}, {'healthy' if told['healthy'] else 'needs help'}"
    ]
    lines.append(f"  step       {told['step']} since {told['since']}: {told['does']}")
    for label, key in (
        ("waits for", "waitsFor"),
        ("tries", "tries"),
        ("gives up", "givesUpAt"),
        ("looks again", "looksAgainAt"),
    ):
        if told.get(key):
            lines.append(f"  {label:<10} {told[key]}")
    if told.get("engine"):
        engine = told["engine"]
        lines.append(
            f"  engine     {engine['state']}, epoch {engine['epoch']}, last heard of {engine['lastHeartbeat']}"
        )
    if told.get("lastError"):
        lines.append(f"  last error {told['lastError']['code']}: {told['lastError']['message']}")
    lines += [f"  → {advice}" for advice in told["advice"]]
    return lines
