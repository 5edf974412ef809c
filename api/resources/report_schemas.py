"""Parts of the schemas of reports."""

from typing import Any

from api.resources.execution_parts import TEXT

COUNT = {"type": "integer", "format": "int64"}
TARGET_ID = "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11"
TARGET: dict[str, Any] = {
    "stepName": TEXT,
    "targetId": TEXT,
    "serverName": TEXT,
    "databaseName": TEXT,
    "schemaName": TEXT,
}


def object_of(required: str = "", **properties: Any) -> dict[str, Any]:
    """`required`: names with spaces between them."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}
