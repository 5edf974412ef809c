"""The feeds of events: of an execution, and of a whole account."""

from api.event_stream import AFTER, FOLLOW
from api.resource import Feed, Query
from workflows import events

QUERY = (
    Query(
        name=AFTER,
        description="The number of the last event that the client has; the header Last-Event-ID wins over it.",
        schema={"type": "integer", "format": "int64", "minimum": 0},
    ),
    Query(
        name=FOLLOW,
        description="false: the stream ends after the events that there are now.",
        schema={"type": "string", "enum": ["true", "false"]},
    ),
)
EXAMPLE = (
    "retry: 2000\n\n"
    "id: 17\nevent: runEnded\n"
    'data: {"number":17,"eventId":"6f6f2a0e-55f1-4e0e-9a57-2b9f0f6b3c11","kind":"runEnded",'
    '"time":"2031-01-01T02:00:05Z","jobExecutionId":"3f2a1c9e-1111-4111-8111-111111111111",'
    '"data":{"jobName":"vacuum","lifecycle":"Succeeded"}}\n\n'
    "event: end\ndata: {}\n\n"
)
OF_EXECUTION = Feed(run=events.of_execution, title="StreamEvents", example=EXAMPLE, query=QUERY)
OF_ACCOUNT = Feed(run=events.of_account, title="StreamEvents", example=EXAMPLE, query=QUERY)
