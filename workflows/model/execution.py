"""An execution of a job, of one of its steps, or of a step on one target: nothing of it can be set."""

from typing import ClassVar

from workflows.model.wire import Properties


class AttemptProperties(Properties, frozen=True):
    """One attempt on a target: what it took and what it returned."""

    READ_ONLY: ClassVar = frozenset(
        {
            "jobVersion",
            "jobExecutionId",
            "stepId",
            "stepName",
            "targetId",
            "attempt",
            "lifecycle",
            "provisioningState",
            "createTime",
            "startTime",
            "endTime",
            "endReason",
            "hostId",
            "invocationId",
            "backendPid",
            "serverVersion",
            "sqlstate",
            "message",
            "detail",
            "hint",
            "context",
            "errorPosition",
            "errorFingerprint",
            "statementNo",
            "rows",
            "bytes",
            "timings",
            "blockers",
            "notices",
            "xactId",
            "resultHash",
            "resultSets",
            "results",
        }
    )


class ExecutionProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset(
        {
            "jobVersion",
            "jobExecutionId",
            "stepId",
            "stepName",
            "lifecycle",
            "provisioningState",
            "createTime",
            "startTime",
            "endTime",
            "currentAttempts",
            "currentAttemptStartTime",
            "lastMessage",
            "target",
            "targetId",
            "waitReason",
            "endReason",
            "wave",
            "waves",
            "haltRule",
            "notBefore",
            "origin",
            "slot",
            "actor",
            "door",
            "rerunOf",
            "planOf",
            "nextAttemptTime",
            "runAttempts",
            "limit",
            "overrides",
            "targets",
            "rowsAffected",
        }
    )
