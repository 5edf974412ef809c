"""`muster account …`: a customer of the REST API."""

import argparse
from typing import TYPE_CHECKING, Any

from muster.cli import client

if TYPE_CHECKING:
    import httpx


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    account = commands.add_parser("account", help="look after job accounts")
    verbs = account.add_subparsers(dest="verb", required=True, metavar="VERB")
    doctor = verbs.add_parser(
        "doctor", help="why an account is slow, stuck or failed, and what to do"
    )
    doctor.add_argument("account", metavar="NAME", help="name or resource id of the account")
    client.add_url(doctor)


def run(options: argparse.Namespace) -> int:
    def doctor(api: "httpx.Client") -> int:
        worst = 0
        for path in client.accounts(api, options.account):
            told = client.understood(api.post(f"{path}/doctor"))
            print("\n".join(_lines(path, told)))
            worst = max(worst, 0 if told["healthy"] else 2)
        return worst

    return client.calling(options, doctor)


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
