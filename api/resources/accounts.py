"""Job accounts, ARM's jobAgents: a Jobs application linked to a control database."""

from api.resource import Action, Async, Parts, Polling, Query, ResourceType, Sync, View
from api.resources import event_feeds, execution_parts, target_history
from api.resources.activity import ACTIVITY
from api.resources.history import HISTORY
from api.resources.servers import SERVERS
from api.resources.shared import CONDITIONS, FAILURE
from api.versions import SQL
from workflows import account_actions, account_servers, accounts, executions, queries
from workflows.model.account import AccountProperties, AllowedServer, DisallowedServer
from workflows.model.query import Query as FleetQuery
from workflows.model.resource import DROP_SCHEMA

TEXT = {"type": ["string", "null"]}
PAUSED = {
    "type": "object",
    "required": ["paused"],
    "properties": {"paused": {"type": "boolean"}, "canceled": {"type": "integer"}},
}
ALLOWED = {
    "type": "object",
    "required": ["server", "allowed", "changed"],
    "properties": {
        "server": {"type": "string"},
        "allowed": {"type": "boolean"},
        "changed": {"type": "boolean"},
    },
}
SEALING = {
    "publicKey": "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=",
    "accountUid": "3f0c2f6e-4d0e-4f1b-9f0a-2f7a55a4a001",
    "identity": "9d5ae1c7-95f7-4b0c-8f6c-0d4c5a1be002",
}
CANCEL = Query(
    name=account_actions.CANCEL,
    description="true: running executions are cancelled too; those that have not begun wait for resume.",
    schema={"type": "string", "enum": ["true", "false"]},
)
DROP = Query(
    name=DROP_SCHEMA,
    description="true: the schema `jobs` is dropped too, with all definitions and history.",
    schema={"type": "string", "enum": ["true", "false"]},
)

ACCOUNTS = ResourceType(
    name="jobAgents",
    namespace="Microsoft.Sql",
    title="JobAgents",
    singular="job account",
    parameter="jobAgentName",
    versions=SQL,
    parent=SERVERS,
    properties=AccountProperties,
    observed={
        "state": {"type": "string"},
        "provisioningState": {"type": "string"},
        "instance": {
            "type": ["object", "null"],
            "properties": {
                "generation": {"type": "integer"},
                "epoch": {"type": "integer"},
                "host": TEXT,
                "startedAt": TEXT,
                "lastHeartbeat": TEXT,
                "version": TEXT,
                "hosts": {"type": "array", "items": {"type": "object"}},
            },
        },
        "paused": {"type": "boolean"},
        "conditions": CONDITIONS,
        "lastError": FAILURE,
    },
    parts=Parts(location=True, tags=True, sku=True, identity=True),
    pattern=r"^[^<>*%&:\\/?]{1,128}$",
    name_example="nightly",
    example={
        "location": "westeurope",
        "sku": {"name": "JA200"},
        "properties": {
            "databaseId": "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/prod"
            "/providers/Microsoft.Sql/servers/eu1/databases/jobs"
        },
    },
    put=Async(accounts.put),
    patch=Async(accounts.patch),
    get=Sync(accounts.get),
    delete=Async(accounts.delete, query=(DROP,)),
    list=Sync(accounts.list_page),
    actions={
        "pause": Action(
            run=account_actions.pause,
            title="Pause",
            gives=PAUSED,
            urgent=True,
            query=(CANCEL,),
            answer={"paused": True},
        ),
        "resume": Action(
            run=account_actions.resume, title="Resume", gives=PAUSED, answer={"paused": False}
        ),
        "queries": Action(
            run=queries.run,
            title="Query",
            takes=FleetQuery,
            requires_body=True,
            gives=execution_parts.ITEM,
            makes="JobExecution",
            makes_in={"jobName": queries.ADHOC[1]},
            example={
                "targetGroup": "tenants",
                "sql": "select version()",
                "timeoutSeconds": 60,
                "maxRows": 1000,
            },
            answer=execution_parts.OF_QUERY,
        ),
        "allowServer": Action(
            run=account_servers.allow,
            title="AllowServer",
            takes=AllowedServer,
            requires_body=True,
            gives=ALLOWED,
            example={"server": "eu1"},
            answer={"server": "eu1", "allowed": True, "changed": True},
        ),
        "disallowServer": Action(
            run=account_servers.disallow,
            title="DisallowServer",
            takes=DisallowedServer,
            requires_body=True,
            gives=ALLOWED,
            example={"server": "eu1"},
            answer={"server": "eu1", "allowed": False, "changed": True},
        ),
        "acknowledge": Action(
            run=account_actions.acknowledge,
            title="Acknowledge",
            gives={"type": "object", "properties": {"acknowledged": {"type": "boolean"}}},
            answer={"acknowledged": True},
        ),
        "sealingKey": Action(
            run=account_actions.sealing_key,
            title="SealingKey",
            gives={
                "type": "object",
                "required": ["publicKey", "accountUid", "identity"],
                "properties": {name: {"type": "string"} for name in SEALING},
            },
            answer=SEALING,
        ),
        "doctor": Action(
            run=account_actions.doctor,
            title="Doctor",
            gives={
                "type": "object",
                "required": ["healthy", "advice"],
                "properties": {
                    "healthy": {"type": "boolean"},
                    "paused": {"type": "boolean"},
                    "step": TEXT,
                    "since": TEXT,
                    "waitsFor": TEXT,
                    "advice": {"type": "array", "items": {"type": "string"}},
                    "hardening": {"type": "array", "items": {"type": "string"}},
                    "lockHolders": {"type": "array", "items": {"type": "object"}},
                },
            },
            answer={
                "healthy": False,
                "paused": False,
                "step": "starting_instance",
                "since": "2026-01-01T00:00:00Z",
                "waitsFor": "a launcher with capacity for the engine",
                "advice": ["No launcher is alive, so no engine can be started."],
            },
        ),
    },
    views={
        "history": HISTORY,
        "allowedServers": View(
            run=account_servers.list_page,
            title="ListAllowedServers",
            item={
                "type": "object",
                "required": ["id", "name", "addedBy", "addedAt"],
                "properties": {
                    name: {"type": "string"} for name in ("id", "name", "addedBy", "addedAt")
                },
            },
            example={
                "id": "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/prod"
                "/providers/Microsoft.Sql/servers/eu1",
                "name": "eu1",
                "addedBy": "ops@example.org",
                "addedAt": "2026-01-01T00:00:00Z",
            },
        ),
        "activityLog": ACTIVITY,
        "executions": View(
            run=executions.OF_ACCOUNT.list_page,
            title="ListExecutions",
            item=execution_parts.ITEM,
            example=execution_parts.EXAMPLE,
            query=execution_parts.OF_RUNS,
            inside=True,
        ),
        "targets": target_history.HISTORY,
    },
    feeds={"events": event_feeds.OF_ACCOUNT},
    polling=Polling(
        status="jobAgentAzureAsyncOperation",
        result="jobAgentOperationResults",
        title="JobAgentOperations",
    ),
)
