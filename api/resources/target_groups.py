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
                {
                    "membershipType": "Exclude",
                    "type": "SqlServer",
                    "serverName": "eu1",
                    "labels": "tier in (trial,internal)",
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
                "notShownCount": 0,
                "targets": [
                    {
                        "type": "SqlDatabase",
                        "serverName": "eu1",
                        "databaseName": "tenant_2",
                        "included": True,
                        "exists": True,
                        "rule": "0e2f7b0a-6a0e-4c53-9d57-6a4e7b0c1d2e",
                        "member": {
                            "targetGroup": "tenants",
                            "position": 1,
                            "text": "SqlServer eu1",
                        },
                    }
                ],
                "leftOutCount": 2,
                "leftOut": [
                    {
                        "serverName": "eu1",
                        "databaseName": "tenant_01",
                        "included": False,
                        "reason": "Excluded",
                        "excludedBy": "SqlDatabase eu1/tenant_0*",
                        "includedBy": "SqlServer eu1",
                        "rule": "4a8e2c1c-2f0b-4b0e-8f0d-0f4f1f0b6f5e",
                        "member": {
                            "targetGroup": "tenants",
                            "position": 2,
                            "text": "SqlDatabase eu1/tenant_0*",
                        },
                    },
                    {
                        "serverName": "eu1",
                        "databaseName": "postgres",
                        "included": False,
                        "exists": True,
                        "reason": "ServersOwn",
                        "rule": "0e2f7b0a-6a0e-4c53-9d57-6a4e7b0c1d2e",
                        "member": {
                            "targetGroup": "tenants",
                            "position": 1,
                            "text": "SqlServer eu1",
                        },
                    },
                ],
                "missing": [],
                "unreachable": [],
            },
        ),
        "doctor": DOCTOR,
    },
)
