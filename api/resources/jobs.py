"""Jobs of a job account, their versions, their start and their next runs."""

from api.resource import Action, Query, Report, ResourceType, Sync, View
from api.resources.accounts import ACCOUNTS
from api.resources.execution_parts import EXAMPLE, ITEM, NAME, OBSERVED, UUID
from api.resources.plan_parts import PLAN, PLAN_EXAMPLE, PLAN_ID, PLAN_ITEM, PLAN_SHOWN
from api.versions import SQL
from workflows import engine_requests, jobs, plans
from workflows.model.job import JobProperties, JobVersionProperties, ScheduleProperties
from workflows.model.start import PlanProperties, Start

SCHEDULE = {"$ref": "#/components/schemas/ScheduleProperties"}
SCHEDULE_GIVEN = {
    "type": "Recurring",
    "interval": "P1D",
    "startTime": "2031-01-01T02:00:00Z",
    "enabled": True,
}
SCHEDULE_SHOWN = {
    **SCHEDULE_GIVEN,
    "endTime": "9999-12-31T11:59:59Z",
    "misfire": {"policy": "runOnce"},
    "overlap": "skipTarget",
}
YES_OR_NO = {"type": "string", "enum": ["true", "false"]}

HEALTH = {
    "type": "object",
    "description": "Only of a job whose last run failed.",
    "properties": {
        "failuresInARow": {"type": "integer"},
        "since": {"type": "string", "format": "date-time"},
        "warnedAt": {"type": "string", "format": "date-time"},
        "disabledAt": {"type": "string", "format": "date-time"},
        "disabledReason": {"type": "string"},
    },
}

LAST_RUN = {
    "type": "object",
    "description": "The run that was created last; the ETag does not change with it.",
    "required": ["jobExecutionId", "lifecycle", "createTime"],
    "properties": {
        "jobExecutionId": {"type": "string"},
        "lifecycle": OBSERVED["lifecycle"],
        "createTime": {"type": "string", "format": "date-time"},
        "endTime": {"type": "string", "format": "date-time"},
    },
}

JOBS = ResourceType(
    name="jobs",
    namespace="Microsoft.Sql",
    title="Jobs",
    singular="job",
    parameter="jobName",
    versions=SQL,
    parent=ACCOUNTS,
    properties=JobProperties,
    observed={
        "version": {"type": "integer"},
        "health": HEALTH,
        "lastRun": LAST_RUN,
        "nextRunTime": {
            "type": "string",
            "format": "date-time",
            "description": "When its schedule starts it next; absent when it does not, or the engine has not computed it.",
        },
    },
    pattern=NAME,
    name_example="vacuum",
    example={
        "properties": {
            "description": "Keeps the statistics of all tenants fresh.",
            "schedule": SCHEDULE_GIVEN,
        }
    },
    shown_example={"version": 1},
    patch_example={"properties": {"paused": True}},
    put=Sync(jobs.put),
    patch=Sync(jobs.patch),
    get=Sync(jobs.FAMILY.get),
    delete=Sync(
        jobs.delete,
        query=(
            Query(name="force", description="true: also while it runs.", schema=YES_OR_NO),
            Query(
                name="purgeHistory",
                description="true: its executions are deleted too, at once.",
                schema=YES_OR_NO,
            ),
        ),
    ),
    list=Sync(jobs.FAMILY.list_page),
    actions={
        "start": Action(
            run=jobs.start,
            title="Start",
            takes=Start,
            gives=ITEM,
            makes="JobExecution",
            example={
                "targets": [{"serverName": "eu1", "databaseName": "tenant_1"}],
                "overrides": {"retryAttempts": 0},
            },
            answer=EXAMPLE,
        ),
        "schedule": Action(
            run=jobs.put_schedule,
            title="ReplaceSchedule",
            method="PUT",
            takes=ScheduleProperties,
            gives=SCHEDULE,
            requires_body=True,
            example=SCHEDULE_GIVEN,
            answer=SCHEDULE_SHOWN,
        ),
        "plan": Action(
            run=plans.make,
            title="Plan",
            gives=PLAN_ITEM,
            makes="JobPlan",
            waits=engine_requests.PATIENCE,
            answer=PLAN_EXAMPLE,
        ),
    },
    reports={
        "schedule": Report(
            run=jobs.read_schedule,
            title="GetSchedule",
            gives=SCHEDULE,
            tagged=True,
            example=SCHEDULE_SHOWN,
        ),
    },
    views={
        "nextRuns": View(
            run=jobs.next_runs,
            title="ListNextRuns",
            item={
                "type": "object",
                "required": ["time"],
                "properties": {"time": {"type": "string", "format": "date-time"}},
            },
            example={"time": "2031-01-01T02:00:00Z"},
        )
    },
)

JOB_VERSIONS = ResourceType(
    name="versions",
    namespace="Microsoft.Sql",
    title="JobVersions",
    singular="job version",
    parameter="jobVersion",
    versions=SQL,
    parent=JOBS,
    properties=JobVersionProperties,
    pattern=r"^[0-9]{1,9}$",
    name_example="1",
    example={},
    get=Sync(jobs.VERSIONS.get),
    list=Sync(jobs.VERSIONS.list_page),
)

JOB_PLANS = ResourceType(
    name="plans",
    namespace="Microsoft.Sql",
    title="JobPlans",
    singular="job plan",
    parameter="planId",
    versions=SQL,
    parent=JOBS,
    properties=PlanProperties,
    observed=PLAN,
    pattern=UUID,
    name_example=PLAN_ID,
    example={},
    shown_example=PLAN_SHOWN,
    get=Sync(plans.FAMILY.get),
    list=Sync(plans.FAMILY.list_page),
)
