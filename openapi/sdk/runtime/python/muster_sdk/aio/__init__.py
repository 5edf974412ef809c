"""The API's client and all that it gives."""

from muster_sdk.aio._client import (
    AccountClient,
    Client,
    DatabaseClient,
    ElasticPoolClient,
    ResourceGroupClient,
    ServerClient,
    SubscriptionClient,
)
from muster_sdk.aio._paging import Pager
from muster_sdk.aio._polling import ExecutionPoller, OperationPoller
from muster_sdk.aio._streams import Download, EventStream

__all__ = [
    "AccountClient",
    "Client",
    "DatabaseClient",
    "Download",
    "ElasticPoolClient",
    "EventStream",
    "ExecutionPoller",
    "OperationPoller",
    "Pager",
    "ResourceGroupClient",
    "ServerClient",
    "SubscriptionClient",
]
