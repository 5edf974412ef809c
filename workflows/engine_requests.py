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

PAUSE = timedelta(milliseconds=200)
PATIENCE = (
    25.0  # seconds for the engine to answer; the declaration of the action adds them to the limit
)


async def ask(
    services: Services,
    call: Call,
    id: ResourceId,
    action: str,
    kind: Literal["resolve", "plan"],
    args: dict[str, Any],
) -> dict[str, Any]:
    """The answer to a request whose id is the same for a repeat."""
    here = await items.enter(services, call, id, locks=False)
    request_id = items.command_of(call, id, here)
    question = Ask(request_id=request_id, kind=kind, args=args)
    await items.write(services, call, id, here, action, question)
    document = await answer(services, call, id, request_id, PATIENCE)
    if document is None:
        raise Unavailable(
            "The account's engine has not answered yet. POST …/doctor on the job account shows why; "
            "the same request can be sent again.",
            code="EngineNotAnswering",
            retry_after=5,
        )
    if wrong := document.get("error"):  # the customer has to fix it: a server that was removed, …
        raise Conflict(wrong["message"], code=wrong["code"])
    return document


async def answer(
    services: Services, call: Call, id: ResourceId, request_id: UUID, patience: float
) -> dict[str, Any] | None:
    """What was answered to a question within so many seconds; None: nothing yet."""
    until = services.clock.monotonic() + patience
    while services.clock.monotonic() < until:
        read = await access.look(services, call, id, ReadRequest(request_id=request_id))
        if read.answered:
            document: dict[str, Any] = read.answer
            return document
        await services.clock.sleep(PAUSE)
    return None
