"""What is refused because a name is wrong: not found, with the nearest names that exist."""

import re
from urllib.parse import unquote

from muster.cli.client import Api, Refused, under
from muster.cli.exits import Exit
from muster.cli.typed import did_you_mean

NAMED = {"jobs": "job", "credentials": "credential", "targetGroups": "target group"}  # in messages
KINDS = NAMED | {  # in paths: collections that can be listed
    "subscriptions": "subscription",
    "resourceGroups": "resource group",
    "servers": "server",
    "databases": "database",
    "elasticPools": "elastic pool",
    "jobAgents": "account",
    "steps": "step",
    "versions": "version",
    "webhooks": "webhook",
    "privateEndpoints": "private endpoint",
    "roleAssignments": "role assignment",
    "locks": "lock",
    "serviceTokens": "token",
}
COLLECTIONS = {  # as messages name them → as paths do
    name.lower(): collection for collection, kind in NAMED.items() for name in (kind, collection)
}
ACCOUNT = re.compile(r"/.+/jobAgents/[^/]+")
NOT_FOUND = re.compile(
    rf"\b(?P<kind>{'|'.join(COLLECTIONS)}) ['\"](?P<name>.+?)['\"] was not found", re.IGNORECASE
)
MOST_COMPARED = 2000  # names
LEAST_ALIKE = 0.4  # names of one installation differ more than the words of a command


def explained(api: Api, refused: Refused) -> Refused:
    """The same error, or one that says which name on the way is not there."""
    for parent, collection, name in _meant(refused):
        try:
            items = api.all(f"{parent}/{collection}")
        except Refused as of_list:
            if of_list.code != Exit.NOT_FOUND:
                return refused
            continue  # what it is in is not there either
        names = [each.get("name") or each["id"].rsplit("/", 1)[-1] for each in items]
        if name.lower() in {each.lower() for each in names}:
            return refused
        return absent(KINDS[collection], name, names)
    return refused


def absent(kind: str, name: str, names: list[str]) -> Refused:
    return Refused(f"there is no {kind} '{name}'{near(name, names)}", Exit.NOT_FOUND)


def near(name: str, names: list[str]) -> str:
    """`; did you mean NAME?`, or nothing."""
    return did_you_mean(name, names[:MOST_COMPARED], least_alike=LEAST_ALIKE)


def jobs_near(api: Api, account: str, name: str) -> str:
    try:
        return near(name, [each["name"] for each in api.all(under(account, "jobs"))])
    except Refused:  # the hint is not worth an error
        return ""


def _meant(refused: Refused) -> list[tuple[str, str, str]]:
    """What may have been asked for in vain, the innermost first: its parent, its collection, its name."""
    named, account = NOT_FOUND.search(refused.message), ACCOUNT.match(refused.path)
    if named and account:
        return [(account[0], COLLECTIONS[named["kind"].lower()], named["name"])]
    if refused.code != Exit.NOT_FOUND:
        return []
    words = refused.path.split("/")
    meant = [
        ("/".join(words[: at - 1]), words[at - 1], unquote(words[at]))
        for at in range(2, len(words))
        if words[at - 1] in KINDS and words[at - 2] not in KINDS
    ]
    return meant[::-1]
