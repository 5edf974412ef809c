"""The audit trail in the form of Azure's activity log."""

from api.resource import At, Query, ResourceType, Sync
from api.resources.shared import SELECT
from api.versions import INSIGHTS
from muster.core.ids import ResourceId
from workflows import audit
from workflows.model.resource import Call, Page
from workflows.services import Services

TEXT = {"type": "object", "properties": {"value": {"type": "string"}}}


async def list_page(
    services: Services, call: Call, scope: ResourceId, after: str | None, top: int
) -> Page:
    return await audit.list_page(services, call, scope, after, top, call.query.get("$filter"))


AUDIT = ResourceType(
    name="eventtypes/management/values",
    namespace="Microsoft.Insights",
    title="ActivityLogs",
    singular="audit event",
    parameter="eventId",
    versions=INSIGHTS,
    at=(At.TENANT, At.SUBSCRIPTION),
    item={
        "type": "object",
        "required": ["id", "eventTimestamp", "caller", "operationName", "status", "resourceId"],
        "properties": {
            "id": {"type": "string"},
            "eventDataId": {"type": "string"},
            "eventTimestamp": {"type": "string", "format": "date-time"},
            "submissionTimestamp": {"type": "string", "format": "date-time"},
            "caller": {"type": "string"},
            "callerType": {"type": "string"},
            "principalId": {"type": ["string", "null"]},
            "tokenId": {"type": ["string", "null"]},
            "httpRequest": {"type": "object"},
            "operationName": TEXT,
            "status": TEXT,
            "resourceId": {"type": "string"},
            "correlationId": {"type": "string"},
            "operationId": {"type": "string"},
            "subscriptionId": {"type": ["string", "null"]},
            "tenantId": {"type": "string"},
        },
    },
    name_example="1",
    example={
        "id": "/providers/Microsoft.Insights/eventtypes/management/values/1",
        "eventDataId": "1",
        "eventTimestamp": "2031-01-01T00:00:00Z",
        "caller": "local",
        "operationName": {"value": "Microsoft.Sql/servers/write"},
        "status": {"value": "Accepted"},
        "resourceId": "/subscriptions/6f1c9a52-3f0e-4f4e-9a57-0d8e6f3b7a11",
    },
    list=Sync(
        list_page,
        query=(
            Query(
                name="$filter",
                description="Clauses such as eventTimestamp ge '2031-01-01T00:00:00Z' and "
                "status eq 'Denied', joined by and.",
            ),
            SELECT,
        ),
    ),
)
