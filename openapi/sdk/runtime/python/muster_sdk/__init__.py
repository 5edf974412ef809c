"""Muster's API for Python.

    from muster_sdk import Client

    with Client("https://muster.example", token) as client:
        account = client.account("/subscriptions/…/jobAgents/nightly")
        run = account.jobs.begin_start("vacuum").result(timeout=3600)
        print(run.lifecycle)

`muster_sdk.aio` has the same for asyncio: `from muster_sdk.aio import Client`.
"""

from muster_sdk import errors, models
from muster_sdk._version import VERSION as __version__
from muster_sdk.errors import MusterError
from muster_sdk.events import Event
from muster_sdk.sync import (
    AccountClient,
    Client,
    Download,
    EventStream,
    ExecutionPoller,
    OperationPoller,
    Pager,
)

__all__ = [
    "AccountClient",
    "Client",
    "Download",
    "Event",
    "EventStream",
    "ExecutionPoller",
    "MusterError",
    "OperationPoller",
    "Pager",
    "__version__",
    "errors",
    "models",
]
