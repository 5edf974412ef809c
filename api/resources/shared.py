"""Parts that several declarations use."""

from typing import Any

from api.resource import Query

CONDITIONS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
FAILURE: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
}
DELETE_QUERY = (
    Query(
        name="forceDeletionTypes",
        description="Microsoft.Sql/servers/databases: drop also what is in use or holds rows.",
    ),
)
