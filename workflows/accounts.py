"""Job accounts: a Jobs application linked to a control database of the same server."""

import base64
import dataclasses
import secrets
from functools import partial
from uuid import uuid4

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from muster.core.db import Connection
from muster.core.errors import Conflict, FieldError, InvalidRequest, NotFound, refuse
from muster.core.ids import ResourceId
from workflows import access, admission, authorization, resources
from workflows.admission import World
from workflows.model.account import ACCOUNT, CAPACITIES, OLD_SKU, AccountProperties
from workflows.model.resource import Body, Call, Page, Resource, Written
from workflows.resource_kind import Birth, Draft, Kind
from workflows.services import Services
from workflows.store import resources as store
from workflows.store.resources import Content, Q
from workflows.target_servers import USE_AS_TARGET
from workflows.validation.account import account as validate

QUOTA = 1_000  # accounts of one subscription


async def admit(
    tx: Connection, call: Call, draft: Draft, old: Resource | None, world: World
) -> None:
    assert world.parent is not None
    server = world.parent.resource
    if server.properties.get("disabled") or server.provisioning_state == "Failed":
        raise Conflict(f"Server '{server.name}' is disabled.", code="ServerDisabled")
    admission.parent_ready(world)
    wanted = draft.properties.get("databaseId", "")
    if old is not None:
        if wanted and wanted.lower() != old.properties["databaseId"].lower():
            raise NotFound(
                "The control database of an account can't be changed; delete the account and create another.",
                code="PropertyChangeUnsupported",
                target="properties.databaseId",
            )
        return
    database = await store.get(tx, wanted.lower(), call.principal.tenant_id)
    where = "properties.databaseId"
    if database is None or database.resource.provisioning_state == "Deleting":
        refuse([FieldError(where, f"There is no database '{wanted}'.", "DatabaseDoesNotExist")])
    if await tx.fetchval(Q.accounts_of_database, wanted.lower()):
        message = "The database is linked to another account."
        refuse([FieldError(where, message, "JobAgentDatabaseAlreadyLinked")])
    if await tx.fetchval(Q.count_in_subscription, draft.id.subscription.lower(), ACCOUNT) >= QUOTA:  # type: ignore[union-attr]
        raise InvalidRequest(
            f"A subscription has at most {QUOTA} accounts.", code="JobAgentExceededQuota"
        )


def fill(draft: Draft, world: World) -> Content:
    """The smallest size by default; capacity always shown; a location as the server's."""
    here = world.parent.resource.location if world.parent else None
    sku = dict(draft.content.sku or {"name": "JA100"})
    if sku.get("name") in (*CAPACITIES, OLD_SKU):
        sku.setdefault("capacity", CAPACITIES.get(sku["name"], 100))
    return msgspec.structs.replace(draft.content, location=draft.content.location or here, sku=sku)


def birth() -> Birth:
    """What is made once, before anything is done: names and secrets survive every repeat."""
    pair = X25519PrivateKey.generate()
    public = base64.b64encode(pair.public_key().public_bytes_raw()).decode()
    return Birth(
        secrets={
            "agent_password": secrets.token_urlsafe(32),
            "engine_password": secrets.token_urlsafe(32),
            "private_key": base64.b64encode(pair.private_bytes_raw()).decode(),
        },
        scratch={"identity": str(uuid4()), "publicKey": public},
    )


KIND = Kind(
    arm_type=ACCOUNT,
    properties=AccountProperties,
    lifecycle="account",
    validate=validate,
    admit=admit,
    fill=fill,
    birth=birth,
    absent="JobAgentNotFound",
    busy="ElasticJobAgentOperationUnavailable",
)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> Written:
    """The server of the control database is a target from the start if the creator may use it as one."""
    usable = await authorization.allows(services, call.principal, USE_AS_TARGET, id.parent)
    kind = dataclasses.replace(KIND, created=_allow_own_server) if usable else KIND
    return await resources.put(services, call, id, body, kind)


async def _allow_own_server(tx: Connection, call: Call, account: Resource) -> None:
    await tx.execute(access.Q.allow_own_server, account.uid, access.caller(call))


patch = partial(resources.patch, kind=KIND)
get = resources.get
delete = partial(resources.delete, kind=KIND)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    try:
        return await resources.list_page(services, call, scope, after, top, ACCOUNT)
    except NotFound:
        async with services.db.connection() as connection:  # asked again for the code of this place
            await admission.parents(
                connection, scope.child(("jobAgents", "")), call.principal.tenant_id
            )
        raise
