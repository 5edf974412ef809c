"""What is refused because a name is wrong: not found, with the nearest names that exist."""

import re
from urllib.parse import unquote

from muster.cli.client import Api, Refused, under
from muster.cli.exits import Exit
from muster.cli.typed import did_you_mean

KINDS = {"jobs": "job", "credentials": "credential", "targetGroups": "target group"}
COLLECTIONS = {  # as messages name them → as paths do
    name.lower(): collection for collection, kind in KINDS.items() for name in (kind, collection)
}
ITEM = re.compile(
    rf"(?P<account>/.+/jobAgents/[^/]+)/(?P<collection>{'|'.join(KINDS)})/(?P<name>[^/]+)"
)
ACCOUNT = re.compile(r"/.+/jobAgents/[^/]+")
NOT_FOUND = re.compile(
    rf"\b(?P<kind>{'|'.join(COLLECTIONS)}) ['\"](?P<name>.+?)['\"] was not found", re.IGNORECASE
)
LEAST_ALIKE = 0.4  # names of one installation differ more than the words of a command


def explained(api: Api, refused: Refused) -> Refused:
    """The same error, or one that says that no job, credential or target group has that name."""
    where = _meant(refused)
    if where is None:
        return refused
    account, collection, name = where
    try:
        names = [each["name"] for each in api.all(f"{account}/{collection}")]
    except Refused:
        return refused
    if name.lower() in {each.lower() for each in names}:
        return refused
    return absent(KINDS[collection], name, names)


def absent(kind: str, name: str, names: list[str]) -> Refused:
    return Refused(f"there is no {kind} '{name}'{near(name, names)}", Exit.NOT_FOUND)


def near(name: str, names: list[str]) -> str:
    """`; did you mean NAME?`, or nothing."""
    return did_you_mean(name, names, least_alike=LEAST_ALIKE)


def jobs_near(api: Api, account: str, name: str) -> str:
    try:
        return near(name, [each["name"] for each in api.all(under(account, "jobs"))])
    except Refused:  # the hint is not worth an error
        return ""


def _meant(refused: Refused) -> tuple[str, str, str] | None:
    """Account, collection and name of what was asked for in vain."""
    named, account = NOT_FOUND.search(refused.message), ACCOUNT.match(refused.path)
    if named and account:
        return account[0], COLLECTIONS[named["kind"].lower()], named["name"]
    if refused.code == Exit.NOT_FOUND and (item := ITEM.match(refused.path)):
        return item["account"], item["collection"], unquote(item["name"])
    return None
