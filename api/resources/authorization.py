"""Role definitions, role assignments and locks at any scope, and service tokens."""

from api.resource import At, ResourceType, Sync
from api.resources.shared import FILTER, TENANT_ID
from api.versions import AUTHORIZATION
from workflows import assignments, locks, role_definitions, tokens
from workflows.model.tenancy import AssignmentProperties, LockProperties, TokenProperties

UUID = r"^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$"
READER = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
STRING = {"type": "string"}

ROLE_DEFINITIONS = ResourceType(
    name="roleDefinitions",
    namespace="Microsoft.Authorization",
    title="RoleDefinitions",
    singular="role definition",
    parameter="roleDefinitionId",
    versions=AUTHORIZATION,
    at=(At.ANYWHERE,),
    item={
        "type": "object",
        "required": ["id", "name", "type", "properties"],
        "properties": {
            "id": STRING,
            "name": STRING,
            "type": STRING,
            "properties": {
                "type": "object",
                "required": ["roleName", "permissions"],
                "properties": {
                    "roleName": STRING,
                    "description": STRING,
                    "type": STRING,
                    "assignableScopes": {"type": "array", "items": STRING},
                    "permissions": {"type": "array", "items": {"type": "object"}},
                },
            },
        },
    },
    pattern=UUID,
    name_example=READER,
    example={
        "id": f"/providers/Microsoft.Authorization/roleDefinitions/{READER}",
        "name": READER,
        "type": "Microsoft.Authorization/roleDefinitions",
        "properties": {
            "roleName": "Reader",
            "description": "Reads everything, changes nothing.",
            "type": "BuiltInRole",
            "assignableScopes": ["/"],
            "permissions": [{"actions": ["*/read"], "notActions": []}],
        },
    },
    get=Sync(role_definitions.get),
    list=Sync(role_definitions.list_page, query=(FILTER,)),
)

ROLE_ASSIGNMENTS = ResourceType(
    name="roleAssignments",
    namespace="Microsoft.Authorization",
    title="RoleAssignments",
    singular="role assignment",
    parameter="roleAssignmentName",
    versions=AUTHORIZATION,
    at=(At.ANYWHERE,),
    properties=AssignmentProperties,
    observed={
        "provisioningState": STRING,
        "createdOn": STRING,
        "updatedOn": STRING,
        "createdBy": STRING,
        "updatedBy": STRING,
    },
    pattern=UUID,
    name_example="8f0f1c1e-52a5-4f2e-9c57-3f4b6d2a7c11",
    example={
        "properties": {
            "roleDefinitionId": f"/providers/Microsoft.Authorization/roleDefinitions/{READER}",
            "principalId": "5f3b8f2e-1c5d-4e7a-9b57-6d2a7c118f0f",
            "principalType": "User",
        }
    },
    put=Sync(assignments.put),
    get=Sync(assignments.get, query=(TENANT_ID,)),
    delete=Sync(assignments.delete, query=(TENANT_ID,)),
    list=Sync(assignments.list_page, query=(FILTER, TENANT_ID)),
)

LOCKS = ResourceType(
    name="locks",
    namespace="Microsoft.Authorization",
    title="Locks",
    singular="lock",
    parameter="lockName",
    versions=AUTHORIZATION,
    at=(At.ANYWHERE,),
    properties=LockProperties,
    observed={"provisioningState": STRING},
    pattern=r"^[A-Za-z0-9_.() -]{1,128}$",
    name_example="keep",
    example={"properties": {"level": "CanNotDelete", "notes": "Holds the production tenants."}},
    put=Sync(locks.put),
    get=Sync(locks.get),
    delete=Sync(locks.delete),
    list=Sync(locks.list_page, query=(FILTER,)),
)

SERVICE_TOKENS = ResourceType(
    name="serviceTokens",
    namespace="Microsoft.Authorization",
    title="ServiceTokens",
    singular="service token",
    parameter="tokenName",
    versions=AUTHORIZATION,
    at=(At.TENANT,),
    properties=TokenProperties,
    observed={"principalId": STRING, "token": STRING, "provisioningState": STRING},
    pattern=r"^[A-Za-z0-9_-]{1,128}$",
    name_example="deploy-pipeline",
    example={"properties": {"expiresOn": "2099-01-01T00:00:00Z", "description": "CI"}},
    put=Sync(tokens.put),
    get=Sync(tokens.get),
    delete=Sync(tokens.delete),
    list=Sync(tokens.list_page),
)
