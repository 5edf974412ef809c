"""Credentials of an account; a password is sealed on arrival and never shown again."""

from muster.core import sealing
from muster.core.errors import refuse
from muster.core.ids import ResourceId
from muster.core.settings import Secret
from nodeagent.items import PutCredential
from workflows import access, items, target_servers
from workflows.accesscache import Access
from workflows.items import Family
from workflows.model.item import WrittenItem
from workflows.model.resource import Body, Call
from workflows.services import Services
from workflows.target_servers import ServerName
from workflows.validation.credential import SERVERS
from workflows.validation.credential import credential as validate

FAMILY = Family("credentials")
ANY = ("*",)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> WrittenItem:
    """Without a password or a reference the old secret stays: clients send it back empty.

    Without servers those that were listed stay: a client that knows only Azure's properties widens nothing.
    """
    here = await items.enter(services, call, id)
    properties = body.properties
    refuse(validate(id.name, properties, services.settings))
    listed = _listed(properties.get("servers"))
    named = [] if listed == ANY else [ServerName(SERVERS, name) for name in listed or ()]
    usable = await target_servers.check_named(services, call, access.account_of(id), named)
    refuse(usable.errors)
    await target_servers.allow(services, call, here, usable.servers)
    command = PutCredential(
        name=id.name,
        username=properties["username"],
        secret=_sealed(here, id.name, properties.get("password"))
        or properties.get("reference")
        or None,
        servers=listed,
        condition=items.condition(call),
    )
    return await FAMILY.put(services, call, id, here, command)


def _listed(servers: list[str] | None) -> tuple[str, ...] | None:
    return None if servers is None else tuple(servers)


def _sealed(here: Access, name: str, password: str | None) -> str | None:
    if not password:
        return None
    belongs = sealing.belongs_to(here.uid, here.identity, name)
    return sealing.seal(here.public_key, Secret(password), belongs)
