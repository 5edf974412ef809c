"""Databases of a server."""

from api.resource import Async, Parts, Polling, ResourceType, Sync
from api.resources.history import HISTORY
from api.resources.servers import SERVERS
from api.resources.shared import CONDITIONS, DELETE_QUERY, EXPAND, FAILURE, SELECT
from api.versions import SQL
from workflows import databases
from workflows.model.database import DatabaseProperties

DATABASES = ResourceType(
    name="databases",
    namespace="Microsoft.Sql",
    title="Databases",
    singular="database",
    parameter="databaseName",
    versions=SQL,
    parent=SERVERS,
    properties=DatabaseProperties,
    observed={
        "status": {"type": "string"},
        "provisioningState": {"type": "string"},
        "databaseId": {"type": "string"},
        "creationDate": {"type": "string"},
        "currentServiceObjectiveName": {"type": "string"},
        "requestedServiceObjectiveName": {"type": "string"},
        "defaultSecondaryLocation": {"type": "string"},
        "failoverGroupId": {"type": "string"},
        "maxLogSizeBytes": {"type": "integer"},
        "earliestRestoreDate": {"type": "string"},
        "currentSku": {"type": "object"},
        "currentBackupStorageRedundancy": {"type": "string"},
        "pausedDate": {"type": "string"},
        "resumedDate": {"type": "string"},
        "isInfraEncryptionEnabled": {"type": "boolean"},
        "sizeBytes": {"type": ["integer", "null"]},
        "adopted": {"type": "boolean"},
        "conditions": CONDITIONS,
        "lastError": FAILURE,
    },
    parts=Parts(location=True, tags=True, sku=True, identity=True),
    pattern=r"^[^/\x00-\x1f]{1,63}$",
    name_example="tenant_1",
    example={
        "location": "westeurope",
        "tags": {"tenant": "1"},
        "sku": {"name": "S0", "tier": "Standard"},
        "properties": {"collation": "SQL_Latin1_General_CP1_CI_AS", "labels": {"tier": "gold"}},
    },
    put=Async(databases.put),
    patch=Async(databases.patch),
    get=Sync(databases.get, query=(EXPAND, SELECT)),
    delete=Async(databases.delete, query=DELETE_QUERY),
    list=Sync(databases.list_page),
    views={"history": HISTORY},
    polling=Polling(
        status="databaseAzureAsyncOperation",
        result="databaseOperationResults",
        title="DatabaseOperations",
    ),
)
