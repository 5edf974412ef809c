"""The state changes of a resource's machine."""

from api.resource import View
from workflows import history

HISTORY = View(
    run=history.list_page,
    title="ListHistory",
    item={
        "type": "object",
        "required": ["sequence", "to", "reason", "time"],
        "properties": {
            "sequence": {"type": "integer"},
            "from": {"type": ["string", "null"]},
            "to": {"type": "string"},
            "reason": {"type": "string"},
            "operationId": {"type": ["string", "null"]},
            "time": {"type": "string", "format": "date-time"},
        },
    },
    example={
        "sequence": 1,
        "from": None,
        "to": "creating",
        "reason": "put",
        "operationId": "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11",
        "time": "2031-01-01T00:00:00Z",
    },
)
