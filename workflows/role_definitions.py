"""The roles as resources: the same at every scope that exists."""

from typing import Any

from muster.core.errors import NotFound
from muster.core.ids import ResourceId
from workflows import resources
from workflows.model.resource import Call, Page
from workflows.roles import PREFIX, ROLES, Role
from workflows.services import Services


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    del after, top
    await _exists(services, call, scope)
    return Page(items=[shown(role, scope) for role in ROLES.values()])


async def get(services: Services, call: Call, id: ResourceId) -> dict[str, Any]:
    await _exists(services, call, id.parent)
    role = ROLES.get(id.name.lower())
    if role is None:
        raise NotFound(
            f"There is no role definition '{id.name}'.", code="RoleDefinitionDoesNotExist"
        )
    return shown(role, id.parent)


async def _exists(services: Services, call: Call, scope: ResourceId) -> None:
    if scope.pairs:
        await resources.get(services, call, scope)


def shown(role: Role, scope: ResourceId) -> dict[str, Any]:
    base = "" if scope.text == "/" else scope.text
    return {
        "id": f"{base}{PREFIX}{role.id}",
        "name": role.id,
        "type": "Microsoft.Authorization/roleDefinitions",
        "properties": {
            "roleName": role.name,
            "description": role.description,
            "type": "BuiltInRole",
            "assignableScopes": ["/"],
            "permissions": [{"actions": role.actions, "notActions": role.not_actions}],
        },
    }
