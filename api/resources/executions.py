"""Executions: of a job, of its steps, of a step on one target, and each attempt there."""

from msgspec import UNSET

from api.resource import Action, ResourceType, Sync, UseCase, View
from api.resources import event_feeds, result_reports
from api.resources import execution_parts as parts
from api.resources import execution_reports as reports
from api.resources.jobs import JOBS
from api.versions import SQL
from workflows import executions
from workflows.model.execution import AttemptProperties, ExecutionProperties
from workflows.model.wire import Maybe, Properties


class Rerun(Properties, frozen=True):
    only: Maybe[list[str]] = UNSET  # how the targets ended; default: failed and timedOut
    targets: Maybe[list[str]] = UNSET  # their ids


class Cancel(Properties, frozen=True):
    reason: Maybe[str] = UNSET


def _cancel(run: UseCase) -> Action:
    return Action(
        run=run,
        title="Cancel",
        takes=Cancel,
        gives=None,
        urgent=True,
        example={"reason": "The wrong fleet."},
    )


EXECUTIONS = ResourceType(
    name="executions",
    namespace="Microsoft.Sql",
    title="JobExecutions",
    singular="job execution",
    parameter="jobExecutionId",
    versions=SQL,
    parent=JOBS,
    properties=ExecutionProperties,
    observed=parts.OBSERVED,
    bodiless=True,
    pattern=parts.UUID,
    name_example=parts.EXECUTION_ID,
    example={},
    shown_example=parts.SHOWN,
    put=Sync(executions.put),
    get=Sync(executions.FAMILY.get, query=(parts.DELETED,)),
    list=Sync(executions.FAMILY.list_page, query=parts.OF_RUNS),
    actions={
        "cancel": _cancel(executions.cancel),
        "rerun": Action(
            run=executions.rerun,
            title="Rerun",
            takes=Rerun,
            gives=parts.ITEM,
            makes="JobExecution",
            example={"only": ["failed", "timedOut"]},
            answer=parts.EXAMPLE,
        ),
        "resume": Action(
            run=executions.resume,
            title="Resume",
            gives=parts.ITEM,
            makes="JobExecution",
            answer=parts.EXAMPLE,
        ),
        "abort": Action(
            run=executions.abort,
            title="Abort",
            gives=parts.ITEM,
            makes="JobExecution",
            urgent=True,
            answer=parts.EXAMPLE,
        ),
    },
    views={
        "targets": View(
            run=executions.OF_ALL_STEPS.list_page,
            title="ListTargets",
            item=parts.TARGET_ITEM,
            example={"properties": {**parts.SHOWN, **parts.OF_TARGET}},
            query=parts.OF_TARGETS,
        ),
        "errors": reports.ERRORS,
        "messages": reports.MESSAGES,
        "commandTags": result_reports.COMMAND_TAGS,
    },
    reports={"summary": reports.SUMMARY, "results": result_reports.RESULTS},
    feeds={"events": event_feeds.OF_EXECUTION},
)

STEP_EXECUTIONS = ResourceType(
    name="steps",
    namespace="Microsoft.Sql",
    title="JobStepExecutions",
    singular="job step execution",
    parameter="stepName",
    versions=SQL,
    parent=EXECUTIONS,
    properties=ExecutionProperties,
    observed=parts.OBSERVED,
    pattern=parts.NAME,
    name_example="analyze",
    example={},
    shown_example={**parts.SHOWN, **parts.OF_STEP},
    get=Sync(executions.OF_STEP.get, query=(parts.DELETED,)),
    list=Sync(executions.OF_STEP.list_page, query=parts.FILTERS),
    actions={"cancel": _cancel(executions.cancel_step)},
)

TARGET_EXECUTIONS = ResourceType(
    name="targets",
    namespace="Microsoft.Sql",
    title="JobTargetExecutions",
    singular="job target execution",
    parameter="targetId",
    versions=SQL,
    parent=STEP_EXECUTIONS,
    properties=ExecutionProperties,
    observed=parts.OBSERVED,
    pattern=parts.UUID,
    name_example="0b5c3c58-7a0e-4a3f-8f53-4f4c4f0f9a11",
    example={},
    shown_example={**parts.SHOWN, **parts.OF_TARGET},
    get=Sync(executions.OF_TARGET.get, query=(parts.DELETED,)),
    list=Sync(executions.OF_TARGET.list_page, query=parts.OF_TARGETS),
    actions={
        "cancel": _cancel(executions.cancel_target),
        "retry": Action(
            run=executions.retry,
            title="Retry",
            gives=parts.TARGET_ITEM,
            makes="JobTargetExecution",
            answer=parts.RETRIED,
        ),
    },
    reports={"why": reports.WHY},
)

ATTEMPTS = ResourceType(
    name="attempts",
    namespace="Microsoft.Sql",
    title="JobTargetAttempts",
    singular="job target attempt",
    parameter="attempt",
    versions=SQL,
    parent=TARGET_EXECUTIONS,
    properties=AttemptProperties,
    observed=reports.ATTEMPT,
    pattern=r"^[0-9]{1,9}$",
    name_example="1",
    example={},
    shown_example=reports.ATTEMPT_EXAMPLE,
    get=Sync(executions.ATTEMPTS.get, query=(parts.DELETED,)),
    list=Sync(executions.ATTEMPTS.list_page, query=(parts.DELETED,)),
    views={"messages": reports.ATTEMPT_MESSAGES},
    reports={"results": result_reports.ATTEMPT_RESULTS},
)
