"""All that ever ran on a database or schema."""

from api.resource import Query, View
from api.resources import execution_parts as parts
from workflows import target_history

HISTORY = View(
    run=target_history.list_page,
    title="ListTargetHistory",
    item={"$ref": "#/components/schemas/JobTargetExecution"},
    example={"properties": {**parts.SHOWN, **parts.OF_TARGET}},
    names=(target_history.SERVER, target_history.DATABASE),
    query=(
        Query(
            name=target_history.SCHEMA,
            description="Only what ran on this schema; without it, on the database and its schemas.",
        ),
        parts.DELETED,
    ),
    inside=True,
)
