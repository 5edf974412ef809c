"""An execution of a job, of one of its steps, or of a step on one target: nothing of it can be set."""

from typing import ClassVar

from workflows.model.wire import Properties


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
            "origin",
            "slot",
            "actor",
            "door",
        }
    )
