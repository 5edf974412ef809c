"""Target groups of a job account: rules that are resolved to targets at each run."""

from api.resource import Action, ResourceType, Sync
from api.resources.accounts import ACCOUNTS
from api.resources.examinations import DOCTOR
from api.resources.execution_parts import ACCOUNT_ID, NAME
from api.versions import SQL
from workflows import engine_requests, target_groups
from workflows.model.target_group import TargetGroupProperties

TARGET_GROUPS = ResourceType(
    name="targetGroups",
    namespace="Microsoft.Sql",
    title="JobTargetGroups",
    singular="job target group",
    parameter="targetGroupName",
    versions=SQL,
    parent=ACCOUNTS,
    properties=TargetGroupProperties,
    pattern=NAME,
    name_example="tenants",
    example={
        "properties": {
            "members": [
                {
                    "type": "SqlServer",
                    "serverName": "eu1",
                    "refreshCredential": f"{ACCOUNT_ID}/credentials/fleet-login",
                },
                {
                    "membershipType": "Exclude",
                    "type": "SqlDatabase",
                    "serverName": "eu1",
                    "databaseName": "tenant_0*",
                },
            ]
        }
    },
    put=Sync(target_groups.put),
    get=Sync(target_groups.FAMILY.get),
    delete=Sync(target_groups.FAMILY.delete),
    list=Sync(target_groups.FAMILY.list_page),
    actions={
        "resolve": Action(
            run=target_groups.resolve,
            title="Resolve",
            waits=engine_requests.PATIENCE,
            answer={
                "count": 1,
                "truncated": False,
                "targets": [
                    {"type": "SqlDatabase", "serverName": "eu1", "databaseName": "tenant_2"}
                ],
                "leftOutCount": 2,
                "leftOut": [
                    {"serverName": "eu1", "databaseName": "postgres", "reason": "ServersOwn"},
                    {
                        "serverName": "eu1",
                        "databaseName": "tenant_01",
                        "reason": "Excluded",
                        "rule": "4a8e2c1c-2f0b-4b0e-8f0d-0f4f1f0b6f5e",
                        "excludedBy": "SqlDatabase eu1/tenant_0*",
                    },
                ],
                "missing": [],
                "unreachable": [],
            },
        ),
        "doctor": DOCTOR,
    },
)
