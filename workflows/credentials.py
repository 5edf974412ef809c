"""Credentials of an account; a password is sealed on arrival and never seen again."""

from muster.core import sealing
from muster.core.errors import refuse
from muster.core.ids import ResourceId
from muster.core.settings import Secret
from nodeagent.items import PutCredential
from workflows import items
from workflows.accesscache import Access
from workflows.items import Family
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call
from workflows.services import Plane
from workflows.validation.credential import credential as validate

FAMILY = Family("credentials")


async def put(plane: Plane, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Without a password or a reference the old secret stays: clients send it back empty."""
    here = await items.enter(plane, call, id)
    given = body.properties
    refuse(validate(id.name, given, plane.settings))
    command = PutCredential(
        name=id.name,
        username=given["username"],
        secret=_sealed(here, id.name, given.get("password")) or given.get("reference") or None,
        condition=items.condition(call),
    )
    return await FAMILY.put(plane, call, id, here, command)


def _sealed(here: Access, name: str, password: str | None) -> str | None:
    if not password:
        return None
    belongs = sealing.belongs_to(here.uid, here.identity, name)
    return sealing.seal(here.public_key, Secret(password), belongs)
