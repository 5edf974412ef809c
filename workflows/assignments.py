"""Role assignments at any scope: who may do what where."""

from typing import Any
from uuid import UUID

from muster.core.db import Connection
from muster.core.errors import FieldError, InvalidRequest, refuse
from muster.core.ids import ResourceId
from workflows import admission, extensions, idempotency, resources
from workflows.model.resource import ASSIGNMENT, Body, Call, Deleted, Page, Resource, Written
from workflows.model.tenancy import AssignmentProperties
from workflows.resource_kind import Kind
from workflows.roles import by_definition_id
from workflows.services import Services
from workflows.store import audit
from workflows.store import resources as store
from workflows.store.resources import Content

KIND = Kind(arm_type=ASSIGNMENT, properties=AssignmentProperties)


async def put(services: Services, call: Call, id: ResourceId, body: Body) -> Written:
    """An assignment is made once; the same PUT again is answered with it."""
    refuse(_rules(id, body.properties))
    async with services.db.transaction() as tx:
        if earlier := await idempotency.earlier(tx, call, id, Written):
            return earlier
        await _scope_exists(tx, call, id)
        old = await store.lock(tx, id.key, call.principal.tenant_id)
        admission.preconditions(call, store.plain(old))
        properties = _properties(id, body.properties)
        if old is None:
            content = Content(properties=properties)
            made = await extensions.insert(tx, call, id, ASSIGNMENT, content, uid=UUID(id.name))
            written = Written(resource=made, created=True)
        else:
            _refuse_change(old.resource, properties)
            written = Written(resource=old.resource)
        await audit.accepted(tx, call, KIND.action("write"), id)
        await idempotency.keep(tx, call, id, written)
    services.roles.forget()
    return written


async def get(services: Services, call: Call, id: ResourceId) -> Resource:
    return await resources.get(services, call, id)


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    return await extensions.list_page(services, call, ASSIGNMENT, scope, after, top)


async def delete(services: Services, call: Call, id: ResourceId) -> Deleted:
    gone = await resources.delete(services, call, id, KIND)
    services.roles.forget()
    return gone


def _rules(id: ResourceId, properties: dict[str, Any]) -> list[FieldError]:
    errors = []
    try:
        UUID(id.name)
    except ValueError:
        errors.append(
            FieldError("name", "A role assignment is named by a uuid.", "InvalidRoleAssignmentId")
        )
    try:
        by_definition_id(properties["roleDefinitionId"])
    except InvalidRequest as wrong:
        errors.append(FieldError("properties.roleDefinitionId", wrong.message, wrong.code))
    errors += _scope(id.parent, properties.get("scope"))
    if not 1 <= len(properties["principalId"]) <= 256:
        errors.append(
            FieldError("properties.principalId", "A principal id has 1 to 256 characters.")
        )
    return errors


def _scope(scope: ResourceId, text: str | None) -> list[FieldError]:
    """The URL decides; a client that sends the scope too must mean the same one."""
    where = "properties.scope"
    try:
        if text is None or ResourceId.parse(text) == scope:
            return []
    except InvalidRequest as wrong:
        return [FieldError(where, wrong.message, wrong.code)]
    return [FieldError(where, f"It is not the scope of the URL, '{scope}'.")]


def _properties(id: ResourceId, properties: dict[str, Any]) -> dict[str, Any]:
    values = {n: value for n, value in properties.items() if value is not None and n != "scope"}
    role = by_definition_id(values["roleDefinitionId"])
    return values | {
        "principalType": values.get("principalType", "User"),
        "roleDefinitionKey": role.id,
        "scopeKey": id.parent.key,
    }


def _refuse_change(old: Resource, new: dict[str, Any]) -> None:
    same = ("principalId", "roleDefinitionKey", "scopeKey")
    is_group = [each["principalType"] == "Group" for each in (old.properties, new)]
    if any(old.properties[name] != new[name] for name in same) or is_group[0] != is_group[1]:
        raise InvalidRequest(
            "A role assignment's principal and role can't be changed; delete it and create another.",
            code="RoleAssignmentUpdateNotPermitted",
        )


async def _scope_exists(tx: Connection, call: Call, id: ResourceId) -> None:
    world = await admission.parents(tx, id, call.principal.tenant_id)
    admission.unlocked(world, id, delete=False)
