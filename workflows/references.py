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


async def check(
    services: Services, call: Call, account: ResourceId, named: Iterable[Reference]
) -> list[FieldError]:
    """All that does not fit. What belongs to others is Forbidden, whether or not it exists."""
    errors: list[FieldError] = []
    sound: set[tuple[str, str]] = set()  # thousands of members may name one credential
    for each in named:
        if (each.kind, each.text) in sound:
            continue
        other = references.foreign(each.text, account, each.kind)
        if other is not None:
            await demand(services, call, f"{other.type}/read", other, account)
        wrong = references.check(each.where, each.text, account, each.kind)
        errors += wrong
        if not wrong:
            sound.add((each.kind, each.text))
    return errors
