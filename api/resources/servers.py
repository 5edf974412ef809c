"""PostgreSQL servers, under the type and with the models of Azure's SQL servers."""

from typing import ClassVar

from api.resource import Action, Async, At, Parts, Polling, Query, ResourceType, Sync
from api.resources.history import HISTORY
from api.resources.shared import ASKING, CONDITIONS, DELETE_QUERY, EXPAND, FAILURE
from api.versions import SQL
from workflows import servers
from workflows.model.server import ServerProperties
from workflows.model.wire import Properties


class CheckName(Properties, frozen=True, kw_only=True):
    REQUIRED: ClassVar = frozenset({"name", "type"})

    name: str = ""
    type: str = ""


class Discover(Properties, frozen=True, kw_only=True):
    """Nothing can be chosen yet: all databases of the server are looked at."""


FORCE = Query(
    name="force",
    description="true: also while target groups or steps name the server.",
    schema={"type": "string", "enum": ["true", "false"]},
)

SERVERS = ResourceType(
    name="servers",
    namespace="Microsoft.Sql",
    title="Servers",
    singular="server",
    parameter="serverName",
    versions=SQL,
    at=(At.GROUP,),
    also_listed=(At.SUBSCRIPTION,),
    properties=ServerProperties,
    observed={
        "state": {"type": "string"},
        "provisioningState": {"type": "string"},
        "fullyQualifiedDomainName": {"type": ["string", "null"]},
        "privateEndpointConnections": {"type": "array", "items": {"type": "object"}},
        "workspaceFeature": {"type": "string"},
        "externalGovernanceStatus": {"type": "string"},
        "serverVersion": {"type": ["string", "null"]},
        "embedded": {"type": "boolean"},
        "conditions": CONDITIONS,
        "lastError": FAILURE,
    },
    parts=Parts(location=True, tags=True, identity=True),
    pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    name_example="eu1",
    example={
        "location": "westeurope",
        "tags": {"stage": "production"},
        "properties": {
            "administratorLogin": "muster",
            "administratorLoginPassword": "correct horse battery staple",
            "endpoint": {"host": "db1.example.com", "port": 5432, "sslMode": "verify-full"},
            "maxConnections": 20,
            "labels": {"region": "eu"},
        },
    },
    put=Async(servers.put),
    patch=Async(servers.patch),
    get=Sync(servers.get, query=(EXPAND,)),
    delete=Async(servers.delete, query=(*DELETE_QUERY, FORCE), waits=ASKING),
    list=Sync(servers.list_page, query=(EXPAND,)),
    actions={
        "check": Action(
            run=servers.check,
            title="Check",
            gives={
                "type": "object",
                "required": ["reachable"],
                "properties": {
                    "reachable": {"type": "boolean"},
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                },
            },
            answer={"reachable": True},
        ),
        "discover": Action(
            run=servers.discover,
            title="Discover",
            takes=Discover,
            gives={
                "type": "object",
                "required": ["value"],
                "properties": {"value": {"type": "array", "items": {"type": "object"}}},
            },
            answer={"value": [{"name": "tenant_1"}]},
        ),
    },
    provider_actions={
        "checkNameAvailability": Action(
            run=servers.check_name,
            title="CheckNameAvailability",
            takes=CheckName,
            requires_body=True,
            gives={
                "type": "object",
                "required": ["name", "available"],
                "properties": {
                    "name": {"type": "string"},
                    "available": {"type": "boolean"},
                    "reason": {"type": "string", "enum": ["Invalid", "AlreadyExists"]},
                    "message": {"type": "string"},
                },
            },
            example={"name": "eu1", "type": "Microsoft.Sql/servers"},
            answer={"name": "eu1", "available": True},
        )
    },
    views={"history": HISTORY},
    polling=Polling(
        status="serverAzureAsyncOperation",
        result="serverOperationResults",
        title="ServerOperations",
    ),
)
