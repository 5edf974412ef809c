"""Private endpoints of a job account: connections to servers that need an approval."""

from api.resource import Action, ResourceType, Sync
from api.resources.accounts import ACCOUNTS
from api.resources.execution_parts import ACCOUNT_ID, NAME
from api.versions import SQL
from workflows import private_endpoints
from workflows.model.private_endpoint import PrivateEndpointProperties

SHOWN = {"$ref": "#/components/schemas/JobPrivateEndpoint"}
SERVER_ID = ACCOUNT_ID.partition("/jobAgents")[0]
ENDPOINT_ID = "EJ_0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11_to-eu1"


def answer(status: str) -> dict[str, object]:
    return {
        "name": "to-eu1",
        "properties": {
            "targetServerAzureResourceId": SERVER_ID,
            "privateEndpointId": ENDPOINT_ID,
            "status": status,
        },
    }


PRIVATE_ENDPOINTS = ResourceType(
    name="privateEndpoints",
    namespace="Microsoft.Sql",
    title="JobPrivateEndpoints",
    singular="job private endpoint",
    parameter="privateEndpointName",
    versions=SQL,
    parent=ACCOUNTS,
    properties=PrivateEndpointProperties,
    observed={
        "privateEndpointId": {"type": "string"},
        "status": {"type": "string", "enum": ["Pending", "Approved", "Rejected"]},
    },
    pattern=NAME,
    name_example="to-eu1",
    example={"properties": {"targetServerAzureResourceId": SERVER_ID}},
    shown_example={"privateEndpointId": ENDPOINT_ID, "status": "Pending"},
    put=Sync(private_endpoints.put),
    get=Sync(private_endpoints.FAMILY.get),
    delete=Sync(private_endpoints.FAMILY.delete),
    list=Sync(private_endpoints.FAMILY.list_page),
    actions={
        "approve": Action(
            run=private_endpoints.approve, title="Approve", gives=SHOWN, answer=answer("Approved")
        ),
        "reject": Action(
            run=private_endpoints.reject, title="Reject", gives=SHOWN, answer=answer("Rejected")
        ),
    },
)
