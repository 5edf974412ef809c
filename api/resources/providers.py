"""Resource providers: which namespaces a subscription uses, and what each of them can do."""

from typing import Any

from api.resource import Action, At, ResourceType, Sync
from api.resources.shared import EXPAND
from api.versions import RESOURCES, SQL
from muster.core.ids import ResourceId
from workflows import providers
from workflows.model.resource import Call, Page
from workflows.services import Services
from workflows.target_servers import USE_AS_TARGET

PROVIDER = {
    "type": "object",
    "required": ["id", "namespace", "registrationState"],
    "properties": {
        "id": {"type": "string"},
        "namespace": {"type": "string"},
        "registrationState": {"type": "string", "enum": ["Registered", "Unregistered"]},
        "registrationPolicy": {"type": "string"},
    },
}
EXAMPLE = {
    "id": "/subscriptions/6f1c9a52-3f0e-4f4e-9a57-0d8e6f3b7a11/providers/Microsoft.Sql",
    "namespace": "Microsoft.Sql",
    "registrationState": "Registered",
    "registrationPolicy": "RegistrationRequired",
}

PROVIDERS = ResourceType(
    name="providers",
    namespace="Microsoft.Resources",
    title="Providers",
    singular="resource provider",
    parameter="resourceProviderNamespace",
    versions=RESOURCES,
    core=True,
    at=(At.SUBSCRIPTION,),
    item=PROVIDER,
    names=tuple(providers.NAMESPACES.values()),
    name_example="Microsoft.Sql",
    example=EXAMPLE,
    get=Sync(providers.get, query=(EXPAND,)),
    list=Sync(providers.list_page, query=(EXPAND,)),
    actions={
        "register": Action(
            run=providers.register, title="Register", gives=PROVIDER, answer=EXAMPLE
        ),
        "unregister": Action(
            run=providers.unregister,
            title="Unregister",
            gives=PROVIDER,
            answer=EXAMPLE | {"registrationState": "Unregistered"},
        ),
    },
)


async def list_operations(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    """Every right that can be granted on Microsoft.Sql, read off the declared types."""
    from api.endpoint import table
    from api.resources import RESOURCES as ALL

    del services, call, scope, after, top
    rights = {"Microsoft.Sql/register/action", "Microsoft.Sql/unregister/action", USE_AS_TARGET}
    rights |= {each.action for each in table(ALL) if each.action.startswith("Microsoft.Sql/")}
    return Page(items=[_shown(right) for right in sorted(rights)])


def _shown(right: str) -> dict[str, Any]:
    resource, _, operation = right.removeprefix("Microsoft.Sql/").rpartition("/")
    if operation == "action":
        resource, _, operation = resource.rpartition("/")
    return {
        "name": right,
        "isDataAction": False,
        "display": {
            "provider": "Muster",
            "resource": resource or "Microsoft.Sql",
            "operation": operation,
            "description": f"{operation} {resource or 'Microsoft.Sql'}",
        },
        "origin": "user,system",
    }


OPERATIONS = ResourceType(
    name="operations",
    namespace="Microsoft.Sql",
    title="Operations",
    singular="operation",
    parameter="operationName",
    versions=SQL,
    at=(At.TENANT,),
    item={
        "type": "object",
        "required": ["name", "isDataAction", "display", "origin"],
        "properties": {
            "name": {"type": "string"},
            "isDataAction": {"type": "boolean"},
            "display": {"type": "object", "additionalProperties": {"type": "string"}},
            "origin": {"type": "string"},
        },
    },
    name_example="read",
    example=_shown("Microsoft.Sql/servers/read"),
    list=Sync(list_operations, open=True),
)
