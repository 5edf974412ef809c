"""Changes inside a job account, through REST or psql."""

from api.resource import Query, View
from workflows import activity

TEXT = {"type": "string"}

ACTIVITY = View(
    run=activity.list_page,
    title="ListActivityLog",
    inside=True,
    item={
        "type": "object",
        "required": ["id", "time", "action", "caller", "login", "door"],
        "properties": {
            "id": TEXT,
            "time": {"type": "string", "format": "date-time"},
            "action": TEXT,
            "caller": TEXT,
            "login": TEXT,
            "door": {"type": "string", "enum": list(activity.DOORS)},
            "commandId": TEXT,
            "detail": {"type": "object"},
        },
    },
    example={
        "id": "7",
        "time": "2031-01-01T00:00:00Z",
        "action": "sp_update_job",
        "caller": "dba",
        "login": "dba",
        "door": "psql",
        "detail": {"job_name": "nightly"},
    },
    query=(
        Query(
            name=activity.DOOR,
            description="Only what came through REST, from Muster itself (fsm), or through psql.",
            schema={"type": "string", "enum": list(activity.DOORS)},
        ),
    ),
)
