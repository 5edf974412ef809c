"""Reports about executions: summary, errors, results, why; and the properties of an attempt."""

from typing import Any

from api.resource import Query, Report, View
from api.resources.execution_parts import DELETED, EXECUTION_ID, OBSERVED, TEXT, TIME, WHOLE
from workflows import reports

COUNT = {"type": "integer", "format": "int64"}
NUMBER = {"type": "number"}
COUNTS = {"type": "object", "additionalProperties": COUNT}
LIFECYCLE = OBSERVED["lifecycle"]
TARGET_ID = "0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11"


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


PART = {
    "lifecycle": LIFECYCLE,
    "createTime": TIME,
    "startTime": TIME,
    "endTime": TIME,
    "waitReason": TEXT,
    "endReason": TEXT,
    "lastMessage": TEXT,
    "counts": COUNTS,
    "total": COUNT,
    "done": COUNT,
}
TARGET: dict[str, Any] = {
    "stepName": TEXT,
    "targetId": TEXT,
    "serverName": TEXT,
    "databaseName": TEXT,
    "schemaName": TEXT,
}
CANCELLATIONS = _list(
    _object(
        "requestedBy requestedAt door",
        requestedBy=TEXT,
        requestedAt=TIME,
        reason=TEXT,
        door=TEXT,
        needed=TEXT,
        completedAt=TIME,
        **TARGET,
    )
)
SUMMARY = Report(
    run=reports.summary,
    title="GetSummary",
    gives=_object(
        "lifecycle counts total done ratePerSecond steps byServer byReason",
        jobExecutionId=TEXT,
        jobName=TEXT,
        jobVersion=WHOLE,
        origin=TEXT,
        slot=TIME,
        actor=TEXT,
        door=TEXT,
        stepCount=WHOLE,
        planOf=TEXT,
        limit=WHOLE,
        overrides={"type": "object"},
        rerunOf=TEXT,
        reruns=_list(TEXT),
        attempt=WHOLE,
        nextAttemptTime=TIME,
        runAttempts=OBSERVED["runAttempts"],
        **PART,
        ratePerSecond=NUMBER,
        etaSeconds=NUMBER,
        steps=_list(
            _object(
                "stepId stepName lifecycle",
                stepId=WHOLE,
                stepName=TEXT,
                wave=WHOLE,
                waves=WHOLE,
                haltRule=TEXT,
                notBefore=TIME,
                **PART,
            )
        ),
        byServer=_list(_object("counts total", serverName=TEXT, counts=COUNTS, total=COUNT)),
        byWave=_list(
            _object("wave counts total", stepId=WHOLE, wave=WHOLE, counts=COUNTS, total=COUNT)
        ),
        byReason=_list(_object("reason count", reason=TEXT, count=COUNT)),
        cancellations=CANCELLATIONS,
    ),
    query=(DELETED,),
    tagged=True,
    example={
        "jobExecutionId": EXECUTION_ID,
        "jobName": "vacuum",
        "jobVersion": 1,
        "origin": "caller",
        "actor": "ann",
        "door": "rest",
        "stepCount": 1,
        "lifecycle": "WaitingForChildJobExecutions",
        "createTime": "2031-01-01T00:00:00Z",
        "startTime": "2031-01-01T00:00:01Z",
        "counts": {"Succeeded": 40, "Failed": 1, "Created": 9},
        "total": 50,
        "done": 41,
        "ratePerSecond": 1.5,
        "etaSeconds": 6.0,
        "steps": [
            {
                "stepId": 1,
                "stepName": "analyze",
                "lifecycle": "WaitingForChildJobExecutions",
                "counts": {"Succeeded": 40, "Failed": 1, "Created": 9},
                "total": 50,
                "done": 41,
            }
        ],
        "byServer": [
            {
                "serverName": "eu1",
                "counts": {"Succeeded": 40, "Failed": 1, "Created": 9},
                "total": 50,
            }
        ],
        "byReason": [
            {"reason": "ServerConnections", "count": 9},
            {"reason": "StatementFailed", "count": 1},
        ],
        "cancellations": [
            {
                "requestedBy": "ann",
                "requestedAt": "2031-01-01T00:00:20Z",
                "reason": "The wrong tenant.",
                "door": "rest",
                "stepName": "analyze",
                "targetId": TARGET_ID,
                "serverName": "eu1",
                "databaseName": "tenant_7",
            }
        ],
    },
)
ERRORS = View(
    run=reports.errors,
    title="ListErrors",
    item=_object(
        "count retrying targets",
        fingerprint=TEXT,
        sqlstate=TEXT,
        reason=TEXT,
        message=TEXT,
        hint=TEXT,
        line=WHOLE,
        column=WHOLE,
        count=COUNT,
        retrying=COUNT,
        targets=_list(_object(**TARGET, attempts=WHOLE)),
    ),
    query=(DELETED,),
    example={
        "fingerprint": "42P01 relation does not exist",
        "sqlstate": "42P01",
        "reason": "StatementFailed",
        "message": 'relation "orders" does not exist',
        "line": 1,
        "column": 9,
        "count": 1,
        "retrying": 0,
        "targets": [
            {
                "stepName": "analyze",
                "targetId": TARGET_ID,
                "serverName": "eu1",
                "databaseName": "tenant_1",
                "attempts": 1,
            }
        ],
    },
)
MESSAGES = View(
    run=reports.messages,
    title="ListMessages",
    item=_object(
        "notices",
        **TARGET,
        attempt=WHOLE,
        notices=_list(
            _object(
                "message",
                severity=TEXT,
                sqlstate=TEXT,
                message=TEXT,
                detail=TEXT,
                hint=TEXT,
                context=TEXT,
            )
        ),
    ),
    query=(Query(name="step", description="Only of this step."), DELETED),
    example={
        "stepName": "analyze",
        "targetId": TARGET_ID,
        "serverName": "eu1",
        "databaseName": "tenant_1",
        "attempt": 1,
        "notices": [{"severity": "NOTICE", "sqlstate": "00000", "message": "42 rows moved"}],
    },
)
RESULTS = Report(
    run=reports.results,
    title="GetResults",
    gives=_object(
        "set columns rows targets truncated",
        stepName=TEXT,
        set=WHOLE,
        columns=_list(TEXT),
        rows=_list(_list({})),
        targets=COUNT,
        truncated={"type": "boolean"},
        nextLink={"type": "string", "format": "uri"},
    ),
    query=(
        Query(name="step", description="The step; needed where the execution has several."),
        Query(
            name="set",
            description="Which of the script's result sets, from 1.",
            schema={"type": "integer", "minimum": 1, "maximum": 10_000},
        ),
        DELETED,
    ),
    paged=True,
    example={
        "stepName": "analyze",
        "set": 1,
        "columns": ["serverName", "databaseName", "schemaName", "version"],
        "rows": [["eu1", "tenant_1", None, "PostgreSQL 18.0"]],
        "targets": 1,
        "truncated": False,
    },
)
WHY = Report(
    run=reports.why,
    title="GetWhy",
    gives=_object(
        "lifecycle message details",
        lifecycle=LIFECYCLE,
        waitReason=TEXT,
        message=TEXT,
        since=TIME,
        details={"type": "object"},
        cancellations=CANCELLATIONS,
    ),
    query=(DELETED,),
    example={
        "lifecycle": "Created",
        "waitReason": "ServerConnections",
        "message": "All 4 sessions that eu1 allows are in use.",
        "since": "2031-01-01T00:00:00Z",
        "details": {"attempts": 0},
        "cancellations": [],
    },
)
ATTEMPT: dict[str, Any] = {
    **{
        name: OBSERVED[name]
        for name in (
            "jobVersion",
            "jobExecutionId",
            "stepId",
            "stepName",
            "targetId",
            "lifecycle",
            "provisioningState",
            "createTime",
            "startTime",
            "endTime",
            "endReason",
        )
    },
    "attempt": WHOLE,
    "hostId": TEXT,
    "invocationId": TEXT,
    "backendPid": WHOLE,
    "serverVersion": WHOLE,
    "sqlstate": TEXT,
    "message": TEXT,
    "detail": TEXT,
    "hint": TEXT,
    "context": TEXT,
    "errorPosition": WHOLE,
    "errorFingerprint": TEXT,
    "statementNo": WHOLE,
    "rows": COUNT,
    "bytes": COUNT,
    "timings": {"type": "object"},
    "blockers": _list({"type": "object"}),
    "notices": _list({}),
    "xactId": TEXT,
    "resultHash": TEXT,
    "resultSets": WHOLE,
    "results": _list(
        _object(
            statement=WHOLE,
            tag=TEXT,
            columns=_list(_object(name=TEXT, type=TEXT)),
            rows=_list(_list({})),
            rowCount=COUNT,
            truncated={"type": "boolean"},
        )
    ),
}
ATTEMPT_EXAMPLE = {
    "jobVersion": 1,
    "jobExecutionId": EXECUTION_ID,
    "stepId": 1,
    "stepName": "analyze",
    "targetId": TARGET_ID,
    "attempt": 1,
    "lifecycle": "Succeeded",
    "provisioningState": "Succeeded",
    "createTime": "2031-01-01T00:00:00Z",
    "startTime": "2031-01-01T00:00:01Z",
    "endTime": "2031-01-01T00:00:02Z",
    "backendPid": 4711,
    "serverVersion": 180000,
    "statementNo": 1,
    "rows": 1,
    "resultSets": 1,
    "results": [
        {
            "statement": 1,
            "tag": "SELECT 1",
            "columns": [{"name": "version", "type": "text"}],
            "rows": [["PostgreSQL 18.0"]],
            "rowCount": 1,
            "truncated": False,
        }
    ],
}
