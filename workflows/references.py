"""References in a body to other resources of the same account."""

from collections.abc import Iterable
from typing import Any

import msgspec

from muster.core.errors import FieldError
from muster.core.ids import ResourceId
from workflows.accesscache import Access
from workflows.model.resource import Call
from workflows.services import Services
from workflows.target_servers import demand
from workflows.validation import references

MOST_ERRORS = 50  # as many as an answer shows


class Reference(msgspec.Struct, frozen=True):
    """An id in a body that must name something of the same account."""

    where: str
    text: str
    kind: str  # credentials or targetGroups


def document(text: str | None) -> dict[str, Any] | None:
    """As the control database takes a reference: by name, and as it was given."""
    return {"name": ResourceId.parse(text).name, "asGiven": text} if text else None


def shown(reference: dict[str, Any] | None, kind: str, here: Access) -> str | None:
    """Exactly as it was given; what psql named has its canonical id."""
    if reference is None:
        return None
    text: str | None = reference.get("asGiven")
    return text or here.id.child((kind, reference["name"])).text


class Wrong(msgspec.Struct, frozen=True):
    errors: list[FieldError]
    foreign: ResourceId | None  # in another account


def wrong(account: ResourceId, named: Iterable[Reference]) -> list[Wrong]:
    """Those that do not fit, as many as an answer shows."""
    misfits: list[Wrong] = []
    for each in named:
        if errors := references.check(each.where, each.text, account, each.kind):
            misfits.append(Wrong(errors, references.foreign(each.text, account, each.kind)))
            if len(misfits) == MOST_ERRORS:
                break
    return misfits


async def refused(
    services: Services, call: Call, account: ResourceId, wrong: Iterable[Wrong]
) -> list[FieldError]:
    """What belongs to others is Forbidden, whether or not it exists."""
    errors: list[FieldError] = []
    for each in wrong:
        if each.foreign is not None:
            await demand(services, call, f"{each.foreign.type}/read", each.foreign, account)
        errors += each.errors
    return errors


async def check(
    services: Services, call: Call, account: ResourceId, named: Iterable[Reference]
) -> list[FieldError]:
    return await refused(services, call, account, wrong(account, named))
