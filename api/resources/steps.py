"""Steps of a job, as they are and as they were in its versions."""

from api.resource import ResourceType, Sync
from api.resources.execution_parts import ACCOUNT_ID, NAME
from api.resources.jobs import JOB_VERSIONS, JOBS
from api.versions import SQL
from workflows import steps
from workflows.model.step import StepProperties

EXAMPLE = {
    "properties": {
        "targetGroup": f"{ACCOUNT_ID}/targetGroups/tenants",
        "credential": f"{ACCOUNT_ID}/credentials/fleet-login",
        "action": {"value": "analyze"},
        "executionOptions": {"timeoutSeconds": 3600, "retryAttempts": 3},
        "output": {
            "type": "SqlDatabase",
            "serverName": "reports",
            "databaseName": "fleet",
            "schemaName": "dbo",
            "tableName": "sizes",
            "credential": f"{ACCOUNT_ID}/credentials/fleet-login",
            "includeTarget": True,
        },
    }
}

JOB_STEPS = ResourceType(
    name="steps",
    namespace="Microsoft.Sql",
    title="JobSteps",
    singular="job step",
    parameter="stepName",
    versions=SQL,
    parent=JOBS,
    properties=StepProperties,
    pattern=NAME,
    name_example="analyze",
    example=EXAMPLE,
    patch_example={"properties": {"executionOptions": {"retryAttempts": 5}, "guard": "job"}},
    put=Sync(steps.put),
    patch=Sync(steps.patch),
    get=Sync(steps.FAMILY.get),
    delete=Sync(steps.FAMILY.delete),
    list=Sync(steps.FAMILY.list_page),
)

VERSION_STEPS = ResourceType(
    name="steps",
    namespace="Microsoft.Sql",
    title="JobVersionSteps",
    singular="job version step",
    parameter="stepName",
    versions=SQL,
    parent=JOB_VERSIONS,
    properties=StepProperties,
    pattern=NAME,
    name_example="analyze",
    example=EXAMPLE,
    get=Sync(steps.OF_VERSION.get),
    list=Sync(steps.OF_VERSION.list_page),
)
