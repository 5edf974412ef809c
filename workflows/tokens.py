"""Service tokens: shown once, stored as a digest, scoped, expiring, revocable."""

import hashlib
import secrets
from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec

from muster.core.errors import Conflict, FieldError, InvalidRequest, refuse
from muster.core.ids import TENANT, ResourceId
from workflows import admission, resources
from workflows.model.resource import TOKEN, Body, Call, Deleted, Page, Resource, Written
from workflows.model.tenancy import TokenProperties
from workflows.resource_kind import Kind
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Content
from workflows.validation import common

PREFIX = "mst_"
KIND = Kind(arm_type=TOKEN, properties=TokenProperties)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> Written:
    """Makes a token and shows it in this answer only. An existing one is never shown again."""
    properties = {name: value for name, value in body.properties.items() if value is not None}
    refuse([*common.name(TOKEN, id.name), *_rules(properties, services.clock.now())])
    if "scope" in properties:
        properties["scope"] = ResourceId.parse(properties["scope"]).text  # without a trailing slash
    plain = PREFIX + secrets.token_urlsafe(32)
    uid = uuid4()
    async with services.db.transaction() as tx:
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        admission.preconditions(call, store.plain(old))
        if old:
            raise Conflict(
                f"The service token '{id.name}' exists. Delete it to revoke it, then create a new one.",
                code="ServiceTokenExists",
            )
        made = await store.insert(
            tx,
            uid=uid,
            id=id,
            type=TOKEN,
            parent_key=None,
            tenant_id=call.principal.tenant_id,
            content=Content(properties=properties),
            sealed={"digest": hashlib.sha256(plain.encode()).hexdigest()},
            observed={"principalId": str(uid)},
            state="Succeeded",
            who=call.principal,
        )
        await audit.accepted(tx, call, KIND.action("write"), id)
    return Written(resource=made, created=True, extra={"token": plain})


async def get(services: Services, call: Call, id: ResourceId) -> Resource:
    return await resources.get(services, call, id)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    del scope
    return await resources.list_page(services, call, TENANT, after, top, TOKEN)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    return await resources.delete(services, call, id, KIND)


def _rules(properties: dict[str, Any], now: datetime) -> list[FieldError]:
    errors = []
    if text := properties.get("expiresOn"):
        try:
            expires = msgspec.convert(text, datetime)
            late = expires.tzinfo is None or expires <= now
        except msgspec.ValidationError:
            late = True
        if late:
            errors.append(
                FieldError(
                    "properties.expiresOn",
                    "Expected a future time with a zone, such as 2031-01-01T00:00:00Z.",
                )
            )
    if "scope" in properties:
        try:
            ResourceId.parse(properties["scope"])
        except InvalidRequest as wrong:
            errors.append(FieldError("properties.scope", wrong.message, wrong.code))
    return errors
