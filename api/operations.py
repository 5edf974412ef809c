"""Long-running operations on the wire: where a client polls, how often, and what it sees there."""

from datetime import datetime
from typing import Any
from urllib.parse import quote

from api.errors import ProtocolFault
from api.resource import Polling
from api.response import Headers
from fsm.operations import Operation

LONGEST_WAIT = 10
FAILED = 409  # not 5xx: clients would ask again


def headers(
    operation: Operation, polling: Polling, namespace: str, base: str, version: str
) -> Headers:
    """Both kinds of URL, absolute and complete: clients fetch them as they are."""
    status = path(operation, namespace, polling.status)
    result = path(operation, namespace, polling.result)
    query = f"?api-version={quote(version)}"
    return [
        (b"azure-asyncoperation", f"{base}{status}{query}".encode()),
        (b"location", f"{base}{result}{query}".encode()),
        (b"retry-after", b"1"),
    ]


def path(operation: Operation, namespace: str, segment: str) -> str:
    subscription = operation.resource_id.split("/")[2]
    return (
        f"/subscriptions/{quote(subscription, safe='')}/providers/{namespace}"
        f"/locations/{quote(operation.location, safe='')}/{segment}/{operation.operation_id}"
    )


def status(operation: Operation, id: str) -> dict[str, Any]:
    """What Azure-AsyncOperation shows; always 200, also when the operation failed."""
    shown: dict[str, Any] = {
        "id": id,
        "name": str(operation.operation_id),
        "status": operation.status,
        "resourceId": operation.resource_id,
        "startTime": operation.created_at,
    }
    if operation.ended_at is not None:
        shown["endTime"] = operation.ended_at
        shown["percentComplete"] = 100
    if operation.error is not None:
        shown["error"] = operation.error
    return shown


def retry_after(operation: Operation, now: datetime) -> tuple[bytes, bytes]:
    """Quick at first, then a quarter of the time that has passed; never 0."""
    passed = (now - operation.created_at).total_seconds()
    return b"retry-after", str(max(1, min(LONGEST_WAIT, int(passed / 4)))).encode()


class OperationFailed(ProtocolFault):
    """What Location answers in the end when the operation did not succeed."""

    def __init__(self, operation: Operation) -> None:
        error = operation.error or {}
        super().__init__(
            FAILED,
            str(error.get("code", "OperationFailed")),
            str(error.get("message", f"The operation ended as {operation.status}.")),
        )
        self.target = error.get("target")
