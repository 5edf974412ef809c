"""Ids in a body that must name something of the same account; the codes are Azure's."""

from muster.core.errors import FieldError, InvalidRequest
from muster.core.ids import ResourceId
from workflows.model.account import ACCOUNT

MISMATCHES = (
    ("MismatchingSubscriptionWithUrl", "subscriptions"),
    ("MismatchingResourceGroupNameWithUrl", "resourceGroups"),
    ("MismatchingServerNameWithUrl", "servers"),
    ("MismatchingJobAccountNameWithUrl", "jobAgents"),
)


def check(where: str, text: str, account: ResourceId, kind: str) -> list[FieldError]:
    id = _parsed(text, kind)
    if id is None:
        expected = account.child((kind, "…"))
        message = f"'{text[:200]}' is not the id of one of this account's {kind}: {expected}"
        return [FieldError(where, message, "InvalidResourceId")]
    if id.parent == account:
        return []
    return [
        FieldError(where, f"It must belong to this account, {account}.", code)
        for code, key in MISMATCHES
        if (id.named(key) or "").lower() != (account.named(key) or "").lower()
    ]


def foreign(text: str, account: ResourceId, kind: str) -> ResourceId | None:
    """The id, when it names something of the right type in another account."""
    id = _parsed(text, kind)
    return id if id is not None and id.parent != account else None


def _parsed(text: str, kind: str) -> ResourceId | None:
    try:
        id = ResourceId.parse(text)
    except InvalidRequest:
        return None
    return id if id.type.lower() == f"{ACCOUNT}/{kind}".lower() else None
