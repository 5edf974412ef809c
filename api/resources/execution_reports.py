"""Reports about executions: summary, errors, messages, why; and the properties of an attempt."""

from typing import Any

from api.resource import Query, Report, View
from api.resources.execution_parts import DELETED, EXECUTION_ID, OBSERVED, TEXT, TIME, WHOLE
from api.resources.report_schemas import COUNT, TARGET, TARGET_ID, list_of, object_of
from api.resources.result_reports import RESULT_SET, RESULT_SET_EXAMPLE
from workflows import reports

NUMBER = {"type": "number"}
COUNTS = {"type": "object", "additionalProperties": COUNT}
LIFECYCLE = OBSERVED["lifecycle"]


PART = {
    "lifecycle": LIFECYCLE,
    "createTime": TIME,
    "startTime": TIME,
    "endTime": TIME,
    "waitReason": TEXT,
    "endReason": TEXT,
    "lastMessage": TEXT,
    "rowsAffected": OBSERVED["rowsAffected"],
    "counts": COUNTS,
    "total": COUNT,
    "done": COUNT,
}
CANCELLATIONS = list_of(
    object_of(
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
    gives=object_of(
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
        targets=OBSERVED["targets"],
        rerunOf=TEXT,
        reruns=list_of(TEXT),
        attempt=WHOLE,
        nextAttemptTime=TIME,
        runAttempts=OBSERVED["runAttempts"],
        **PART,
        ratePerSecond=NUMBER,
        etaSeconds=NUMBER,
        steps=list_of(
            object_of(
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
        byServer=list_of(object_of("counts total", serverName=TEXT, counts=COUNTS, total=COUNT)),
        byWave=list_of(
            object_of("wave counts total", stepId=WHOLE, wave=WHOLE, counts=COUNTS, total=COUNT)
        ),
        byReason=list_of(object_of("reason count", reason=TEXT, count=COUNT)),
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
    item=object_of(
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
        targets=list_of(object_of(**TARGET, attempts=WHOLE)),
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
NOTICE = object_of(
    "message",
    severity=TEXT,
    sqlstate=TEXT,
    message=TEXT,
    detail=TEXT,
    hint=TEXT,
    context=TEXT,
)
NOTICE_EXAMPLE = {"severity": "NOTICE", "sqlstate": "00000", "message": "42 rows moved"}
MESSAGES = View(
    run=reports.messages,
    title="ListMessages",
    item=object_of("notices", **TARGET, attempt=WHOLE, notices=list_of(NOTICE)),
    query=(Query(name="step", description="Only of this step."), DELETED),
    example={
        "stepName": "analyze",
        "targetId": TARGET_ID,
        "serverName": "eu1",
        "databaseName": "tenant_1",
        "attempt": 1,
        "notices": [NOTICE_EXAMPLE],
    },
)
WHY = Report(
    run=reports.why,
    title="GetWhy",
    gives=object_of(
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
ATTEMPT_MESSAGES = View(
    run=reports.attempt_messages,
    title="ListMessages",
    item=NOTICE,
    query=(DELETED,),
    example=NOTICE_EXAMPLE,
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
    "blockers": list_of({"type": "object"}),
    "notices": list_of({}),
    "xactId": TEXT,
    "resultHash": TEXT,
    "resultSets": WHOLE,
    "results": list_of(object_of(**RESULT_SET)),
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
    "results": [RESULT_SET_EXAMPLE],
}
