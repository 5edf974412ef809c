"""Requests that only an account's engine can answer, since it alone reaches the targets."""

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from muster.core.errors import Conflict, Unavailable
from muster.core.ids import ResourceId
from nodeagent.items import Ask, ReadRequest
from workflows import access, items
from workflows.model.resource import Call
from workflows.services import Services

PAUSE, LONGEST_PAUSE = timedelta(milliseconds=200), timedelta(seconds=2)
GROWTH = 1.25  # many may wait for an engine that does not answer
# Seconds for the engine to answer; the declarations of the actions add them to the limit.
PATIENCE = 25.0


async def ask(
    services: Services,
    call: Call,
    id: ResourceId,
    kind: Literal["resolve", "plan", "doctor", "login"],
    args: dict[str, Any],
    action: str,
) -> dict[str, Any]:
    """The answer to an audited question about the resource; a repeated request gets the first answer."""
    here = await items.enter(services, call, id, locks=False)
    request_id = items.command_of(call, id, here)
    question = Ask(request_id=request_id, kind=kind, args=args)
    await items.write(services, call, id, here, action, question)
    reply = await answer(services, call, id, request_id, PATIENCE)
    if reply is None:
        raise Unavailable(
            "The account's engine has not answered yet. POST …/doctor on the job account shows why; "
            "the same request can be sent again.",
            code="EngineNotAnswering",
            retry_after=5,
        )
    if wrong := reply.get("error"):  # the customer has to fix it, such as a server that was removed
        raise Conflict(wrong["message"], code=wrong["code"])
    return reply


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
