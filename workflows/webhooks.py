"""Webhooks of an account: where notifications go, and what became of each."""

from typing import Any
from uuid import UUID

import msgspec

from muster.core import sealing
from muster.core.errors import FieldError, refuse
from muster.core.ids import ResourceId
from muster.core.settings import Secret
from nodeagent.items import ListItems, PutWebhook, ReplayDeliveries, SendTestEvent
from workflows import access, items
from workflows.access import path_of
from workflows.accesscache import Access
from workflows.items import Family, is_uuid, present
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call, Page
from workflows.services import Services
from workflows.validation.webhook import webhook as validate

FAMILY = Family("webhooks")
STATUS = "status"
STATUSES = ("Pending", "Delivered", "Failed")
MOST_REPLAYED = 1_000


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Without a secret the old one stays: it is never shown, so a client can't send it back."""
    here = await items.enter(services, call, id)
    refuse(validate(id.name, body.properties, services.settings))
    document = {name: value for name, value in body.properties.items() if name != "secret"}
    command = PutWebhook(
        name=id.name,
        document=document,
        secret=_sealed(here, id.name, body.properties.get("secret")),
        condition=items.condition(call),
    )
    return await FAMILY.put(services, call, id, here, command)


async def test(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    """Sends an event of kind test to this webhook; the list of deliveries shows the result."""
    here = await items.enter(services, call, id)
    command = SendTestEvent(name=id.name)
    sent = await items.write(services, call, id, here, FAMILY.action("test/action"), command)
    return {"testId": str(sent.test_id)}


async def replay(
    services: Services, call: Call, id: ResourceId, body: dict[str, Any]
) -> dict[str, Any]:
    """Sends chosen events again, under the same event ids; without a choice all dead letters."""
    here = await items.enter(services, call, id)
    wanted = body.get("eventIds")
    if wanted is not None and not (1 <= len(wanted) <= MOST_REPLAYED and all(map(is_uuid, wanted))):
        message = f"1 to {MOST_REPLAYED} event ids, as the list of deliveries has them."
        refuse([FieldError("eventIds", message)])
    ids = None if wanted is None else tuple(map(UUID, wanted))
    command = ReplayDeliveries(name=id.name, event_ids=ids)
    done = await items.write(services, call, id, here, FAMILY.action("replay/action"), command)
    return {"replayed": done.replayed}


async def deliveries(
    services: Services, call: Call, id: ResourceId, after: str | None, top: int
) -> Page:
    """Those of the newest events first."""
    filters: dict[str, Any] = {}
    if (status := call.query.get(STATUS)) is not None:
        if status.lower() not in map(str.lower, STATUSES):
            refuse([FieldError(STATUS, f"Expected one of {', '.join(STATUSES)}.")])
        filters[STATUS] = status
    cursor = msgspec.json.decode(after) if after else None
    command = ListItems(
        kind="webhooks/deliveries", path=path_of(id), after=cursor, top=top, filters=filters
    )
    page = await access.look(services, call, id, command)
    more = None if page.next is None else msgspec.json.encode(page.next).decode()
    return Page(items=[present(each.properties) for each in page.items], next=more)


def _sealed(here: Access, name: str, secret: str | None) -> str | None:
    if not secret:
        return None
    context = sealing.belongs_to_webhook(here.uid, here.identity, name)
    return sealing.seal(here.public_key, Secret(secret), context)
