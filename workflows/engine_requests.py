"""Requests that only an account's engine can answer, since it alone reaches the targets."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from muster.core.ids import ResourceId
from nodeagent.items import ReadRequest
from workflows import access
from workflows.model.resource import Call
from workflows.services import Services

PAUSE, LONGEST_PAUSE = timedelta(milliseconds=200), timedelta(seconds=2)
GROWTH = 1.25  # many may wait for an engine that does not answer


async def answer(
    services: Services, call: Call, id: ResourceId, request_id: UUID, patience: float
) -> dict[str, Any] | None:
    """What was answered to a question within so many seconds; None: nothing yet."""
    until = services.clock.monotonic() + patience
    pause = PAUSE
    while services.clock.monotonic() < until:
        read = await access.look(services, call, id, ReadRequest(request_id=request_id))
        if read.answered:
            document: dict[str, Any] = read.answer
            return document
        await services.clock.sleep(pause)
        pause = min(pause * GROWTH, LONGEST_PAUSE)
    return None
