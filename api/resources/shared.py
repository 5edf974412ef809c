"""Parts that several declarations use."""

from typing import Any

from api.resource import Query
from workflows.model.resource import FORCED_TYPES

CONDITIONS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
FAILURE: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
}
EXPAND = Query(name="$expand", description="Azure's; without effect: all properties are shown.")
SELECT = Query(name="$select", description="Azure's; without effect: all properties are shown.")
FILTER = Query(name="$filter", description="Azure's; without effect: the list is complete.")
TENANT_ID = Query(name="tenantId", description="Azure's; without effect: the caller's tenant.")
DELETE_QUERY = (
    Query(
        name=FORCED_TYPES,
        description="Microsoft.Sql/servers/databases: drop also what is in use or holds rows.",
    ),
)
ASKING = 120.0  # seconds for the job accounts of a subscription to say what they use
