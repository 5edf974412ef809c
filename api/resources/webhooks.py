"""Webhooks of a job account: receivers of notifications about runs and schedules."""

from api.resource import Action, Query, ResourceType, Sync, View
from api.resources.accounts import ACCOUNTS
from api.resources.execution_parts import EXECUTION_ID, NAME
from api.versions import SQL
from workflows import webhooks
from workflows.model.webhook import Replay, WebhookProperties

TEXT = {"type": "string"}
TIME = {"type": "string", "format": "date-time"}
COUNT = {"type": "integer"}
EVENT_ID = "6f6f2a0e-55f1-4e0e-9a57-2b9f0f6b3c11"
STATUS = {"type": "string", "enum": list(webhooks.STATUSES)}

DELIVERIES = View(
    run=webhooks.deliveries,
    title="ListDeliveries",
    inside=True,
    item={
        "type": "object",
        "required": ["eventId", "number", "kind", "status", "attempts", "eventTime"],
        "properties": {
            "eventId": TEXT,
            "number": {"type": "integer", "format": "int64"},
            "kind": TEXT,
            "events": {"type": "array", "items": TEXT},
            "jobName": TEXT,
            "jobExecutionId": TEXT,
            "status": STATUS,
            "attempts": COUNT,
            "eventTime": TIME,
            "lastAttemptTime": TIME,
            "nextAttemptTime": TIME,
            "lastStatusCode": COUNT,
            "lastError": TEXT,
        },
    },
    example={
        "eventId": EVENT_ID,
        "number": 4711,
        "kind": "runEnded",
        "events": ["failed"],
        "jobName": "vacuum",
        "jobExecutionId": EXECUTION_ID,
        "status": "Failed",
        "attempts": 8,
        "eventTime": "2031-01-01T02:00:05Z",
        "lastAttemptTime": "2031-01-01T03:10:00Z",
        "lastStatusCode": 500,
        "lastError": "the receiver answered 500",
    },
    query=(
        Query(
            name=webhooks.STATUS,
            description="Only deliveries with this status; Failed ones are dead letters.",
            schema=STATUS,
        ),
    ),
)

WEBHOOKS = ResourceType(
    name="webhooks",
    namespace="Microsoft.Sql",
    title="JobWebhooks",
    singular="job webhook",
    parameter="webhookName",
    versions=SQL,
    parent=ACCOUNTS,
    properties=WebhookProperties,
    observed={"pending": COUNT, "delivered": COUNT, "failed": COUNT},
    pattern=NAME,
    name_example="on-call",
    example={
        "properties": {
            "url": "https://alerts.example.org/muster",
            "secret": "correct horse battery staple",
            "events": ["failed", "recovered", "autoDisabled"],
            "jobs": ["vacuum"],
        }
    },
    shown_example={
        "enabled": True,
        "maxAttempts": 8,
        "pending": 0,
        "delivered": 41,
        "failed": 1,
    },
    put=Sync(webhooks.put),
    get=Sync(webhooks.FAMILY.get),
    delete=Sync(webhooks.FAMILY.delete),
    list=Sync(webhooks.FAMILY.list_page),
    actions={
        "test": Action(
            run=webhooks.test,
            title="Test",
            gives={"type": "object", "required": ["testId"], "properties": {"testId": TEXT}},
            answer={"testId": EVENT_ID},
        ),
        "replay": Action(
            run=webhooks.replay,
            title="Replay",
            takes=Replay,
            gives={"type": "object", "required": ["replayed"], "properties": {"replayed": COUNT}},
            example={"eventIds": [EVENT_ID]},
            answer={"replayed": 1},
        ),
    },
    views={"deliveries": DELIVERIES},
)
