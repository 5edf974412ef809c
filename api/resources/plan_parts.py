"""The properties of a plan, and an example of one."""

from typing import Any

from api.resources.execution_parts import ACCOUNT_ID, TEXT, TIME, WHOLE

PLAN_ID = "7c1e0f5a-93c4-4f0e-8a2b-5d6b7c8d9e10"


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


PLACE = {"serverName": TEXT, "databaseName": TEXT, "schemaName": TEXT}
SECONDS = {
    "type": ["number", "null"],
    "description": "From the average of earlier attempts, the connections of each server, maxParallelism and waves; "
    "null: no attempt with the same script and options has succeeded yet, or a server is disabled.",
}
STEP = _list(
    stepId=WHOLE,
    stepName=TEXT,
    targetGroup={"type": ["string", "null"]},
    count={
        "type": "integer",
        "description": "Targets that are pinned, without those that can't be reached.",
    },
    waves=_list(wave=WHOLE, count=WHOLE),
    servers=_list(
        serverName=TEXT,
        count=WHOLE,
        connections={
            "type": ["integer", "null"],
            "description": "How many attempts run there at once at most; null: no host has contacted it yet.",
        },
        disabled={"type": "boolean"},
    ),
    maxParallelism={"type": ["integer", "null"]},
    targets=_list(**PLACE, type=TEXT, wave=WHOLE, rule=TEXT),
    leftOutCount=WHOLE,
    leftOut=_list(**PLACE, reason=TEXT, rule=TEXT, excludedBy=TEXT),
    missingCount=WHOLE,
    missing=_list(**PLACE, rule=TEXT),
    unreachableCount=WHOLE,
    unreachable=_list(**PLACE, code=TEXT, message=TEXT),
    truncated={"type": "boolean", "description": "A list is too long to be shown whole."},
    missingCredentials=_list(serverName=TEXT, count=WHOLE),
    output={
        "type": "object",
        "description": "Where a step with an output writes its rows.",
        "properties": {
            "serverName": TEXT,
            "databaseName": TEXT,
            "schemaName": TEXT,
            "tableName": TEXT,
            "serverExists": {
                "type": "boolean",
                "description": "The account's directory has the server.",
            },
            "disabled": {
                "type": "boolean",
                "description": "The server is disabled, or its private endpoint was rejected.",
            },
            "missingCredentialCount": {
                "type": "integer",
                "description": "Targets for whose rows no credential is configured.",
            },
        },
    },
    outsideTransaction={
        "type": "array",
        "items": TEXT,
        "description": "The beginnings of statements that run outside of a transaction.",
    },
    earlierAttempts={
        "type": "object",
        "properties": {"count": WHOLE, "averageSeconds": {"type": ["number", "null"]}},
    },
    shortestSeconds=SECONDS,
    error={
        "type": "object",
        "properties": {"code": TEXT, "message": TEXT},
        "description": "Why the targets could not be resolved; such a plan can't be started.",
    },
)
PLAN: dict[str, Any] = {
    "jobVersion": WHOLE,
    "expiresAt": TIME,
    "jobExecutionId": {"type": "string", "description": "The execution that was started from it."},
    "count": {"type": "integer", "description": "Targets of all steps together."},
    "shortestSeconds": SECONDS,
    "steps": STEP,
}
PLAN_SHOWN: dict[str, Any] = {
    "jobVersion": 3,
    "expiresAt": "2031-01-04T00:00:00Z",
    "count": 2,
    "shortestSeconds": 3.0,
    "steps": [
        {
            "stepId": 1,
            "stepName": "analyze",
            "targetGroup": "tenants",
            "count": 2,
            "waves": [{"wave": 1, "count": 1}, {"wave": 2, "count": 1}],
            "servers": [{"serverName": "eu1", "count": 2, "connections": 9, "disabled": False}],
            "maxParallelism": None,
            "targets": [
                {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "tenant_1", "wave": 1},
                {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "tenant_2", "wave": 2},
            ],
            "leftOutCount": 1,
            "leftOut": [{"serverName": "eu1", "databaseName": "postgres", "reason": "ServersOwn"}],
            "missingCount": 0,
            "missing": [],
            "unreachableCount": 0,
            "unreachable": [],
            "truncated": False,
            "missingCredentials": [],
            "outsideTransaction": [],
            "earlierAttempts": {"count": 40, "averageSeconds": 1.5},
            "shortestSeconds": 3.0,
        }
    ],
}
PLAN_ITEM = {"$ref": "#/components/schemas/JobPlan"}
PLAN_EXAMPLE = {
    "id": f"{ACCOUNT_ID}/jobs/vacuum/plans/{PLAN_ID}",
    "name": PLAN_ID,
    "type": "Microsoft.Sql/servers/jobAgents/jobs/plans",
    "properties": PLAN_SHOWN,
}
