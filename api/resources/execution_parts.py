"""What the three levels of executions have in common: properties, filters, examples."""

from typing import Any

from api.resource import Query

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
TIME = {"type": "string", "format": "date-time"}
UUID = r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"
NAME = r"^[A-Za-z0-9_()-][A-Za-z0-9_() .-]{0,126}[A-Za-z0-9_()-]$"  # of definitions

RUN_ATTEMPT = {
    "type": "object",
    "required": ["attempt", "lifecycle", "startTime"],
    "properties": {
        "attempt": WHOLE,
        "lifecycle": {"type": "string", "enum": ["InProgress", "Succeeded", "Failed"]},
        "startTime": TIME,
        "endTime": TIME,
        "newlySucceeded": WHOLE,
        "remaining": WHOLE,
        "nextAttemptTime": TIME,
        "reachedLimit": {
            "type": "string",
            "enum": ["maxSuccessiveWithoutProgress", "maxWithoutProgress", "maxWithProgress"],
        },
        "message": TEXT,
    },
}
OBSERVED: dict[str, Any] = {
    "jobVersion": WHOLE,
    "jobExecutionId": TEXT,
    "stepId": WHOLE,
    "stepName": TEXT,
    "lifecycle": {
        "type": "string",
        "enum": [
            "Created",
            "InProgress",
            "WaitingForChildJobExecutions",
            "WaitingForRetry",
            "Succeeded",
            "SucceededWithSkipped",
            "Failed",
            "TimedOut",
            "Canceled",
            "Skipped",
        ],
    },
    "provisioningState": {
        "type": "string",
        "enum": ["Created", "InProgress", "Succeeded", "Failed", "Canceled"],
    },
    "createTime": TIME,
    "startTime": TIME,
    "endTime": TIME,
    "currentAttempts": WHOLE,
    "currentAttemptStartTime": TIME,
    "lastMessage": TEXT,
    "target": {
        "type": "object",
        "properties": {
            "type": TEXT,
            "serverName": TEXT,
            "databaseName": TEXT,
            "schemaName": TEXT,
        },
    },
    "targetId": TEXT,
    "waitReason": TEXT,
    "endReason": TEXT,
    "wave": WHOLE,
    "waves": WHOLE,
    "haltRule": {"type": "string", "enum": ["FailureLimit", "SameError"]},
    "notBefore": TIME,
    "origin": TEXT,
    "slot": TIME,
    "actor": TEXT,
    "door": TEXT,
    "rerunOf": TEXT,
    "planOf": TEXT,
    "limit": WHOLE,
    "overrides": {"type": "object"},
    "targets": {
        "type": "object",
        "description": "Each target once: succeeded in every step, failed or timed out in any. Of a live run with more "
        "than 10000 targets only the total.",
        "required": ["total"],
        "properties": {"total": WHOLE, "done": WHOLE, "succeeded": WHOLE, "failed": WHOLE},
    },
    "rowsAffected": {
        "type": "integer",
        "format": "int64",
        "description": "Rows that succeeded targets inserted, updated, deleted, merged or copied; known when it has ended.",
    },
    "nextAttemptTime": TIME,
    "runAttempts": {"type": "array", "items": RUN_ATTEMPT},
}
DELETED = Query(
    name="includeDeleted",
    description="true: also of jobs that were deleted.",
    schema={"type": "boolean"},
)
FILTERS = (
    Query(name="createTimeMin", description="Created at this time or later.", schema=TIME),
    Query(name="createTimeMax", description="Created before this time.", schema=TIME),
    Query(name="endTimeMin", description="Ended at this time or later.", schema=TIME),
    Query(name="endTimeMax", description="Ended before this time.", schema=TIME),
    Query(
        name="isActive",
        description="true: only those that have not finished; false: only those that have.",
        schema={"type": "boolean"},
    ),
    DELETED,
    Query(
        name="$skip",
        description="Leaves out so many, the newest first.",
        schema={"type": "integer", "format": "int64", "minimum": 0},
    ),
    Query(
        name="$top",
        description="Ends the list after so many.",
        schema={"type": "integer", "format": "int64", "minimum": 1},
    ),
)
LIFECYCLES = OBSERVED["lifecycle"]["enum"]
OF_RUNS = (
    *FILTERS,
    Query(
        name="lifecycle",
        description="Only those in one of these, with commas between them.",
        schema={
            "type": "string",
            "pattern": "^({0})(,({0}))*$".format("|".join(LIFECYCLES)),
        },
    ),
)
LIFECYCLE = "(Created|InProgress|WaitingForRetry|Succeeded|Failed|TimedOut|Canceled|Skipped)"
OF_TARGETS = (
    *FILTERS,
    Query(
        name="lifecycle",
        description="Only targets in one of these, with commas between them.",
        schema={"type": "string", "pattern": f"^{LIFECYCLE}(,{LIFECYCLE})*$"},
    ),
    Query(name="server", description="Only targets on the server of this name."),
    Query(
        name="wave",
        description="Only targets of this wave of the rollout.",
        schema={"type": "integer", "minimum": 1},
    ),
    Query(
        name="fingerprint",
        description="Only targets whose newest attempt failed with this error, as /errors shows it.",
    ),
)
EXECUTION_ID = "5555e4b4-2d4c-4d6e-9a57-0d8e6f3b7a11"
SHOWN = {
    "jobVersion": 1,
    "jobExecutionId": EXECUTION_ID,
    "lifecycle": "Created",
    "provisioningState": "Created",
    "createTime": "2031-01-01T00:00:00Z",
    "currentAttempts": 0,
    "lastMessage": "Job execution created.",
}
ACCOUNT_ID = (
    "/subscriptions/6f1c9a52-3f0e-4f4e-9a57-0d8e6f3b7a11/resourceGroups/fleet/providers"
    "/Microsoft.Sql/servers/eu1/jobAgents/nightly"
)
OF_QUERY = {
    "id": f"{ACCOUNT_ID}/jobs/adhoc/executions/{EXECUTION_ID}",
    "name": EXECUTION_ID,
    "type": "Microsoft.Sql/servers/jobAgents/jobs/executions",
    "properties": SHOWN,
}
ITEM = {"$ref": "#/components/schemas/JobExecution"}
TARGET_ITEM = {"$ref": "#/components/schemas/JobTargetExecution"}
EXAMPLE = {
    "id": f"{ACCOUNT_ID}/jobs/vacuum/executions/{EXECUTION_ID}",
    "name": EXECUTION_ID,
    "type": "Microsoft.Sql/servers/jobAgents/jobs/executions",
    "properties": SHOWN,
}
OF_STEP = {"stepId": 1, "stepName": "analyze"}
OF_TARGET = {
    **OF_STEP,
    "targetId": "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11",
    "currentAttempts": 1,
    "target": {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "tenant_1"},
}
RETRIED = {
    "id": f"{EXAMPLE['id']}/steps/analyze/targets/{OF_TARGET['targetId']}",
    "name": OF_TARGET["targetId"],
    "type": "Microsoft.Sql/servers/jobAgents/jobs/executions/steps/targets",
    "properties": {**SHOWN, **OF_TARGET},
}
