"""Faults as ARM errors: the only place that knows which status a kind of failure has."""

import math
from typing import Any

from litestar import Request
from litestar.exceptions import HTTPException

from api.request_context import RequestContext, of
from api.response import Answer, Headers, json_answer
from muster.core import telemetry
from muster.core.errors import (
    Conflict,
    Fault,
    FieldError,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Throttled,
    Unauthenticated,
    Unavailable,
)

log = telemetry.get(__name__)

STATUS: dict[type[Fault], int] = {
    InvalidRequest: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    Throttled: 429,
    Internal: 500,
    Unavailable: 503,
}
MOST_DETAILS = 50


class ProtocolFault(InvalidRequest):
    """A refusal that is HTTP's own: it carries its status, and headers that explain it."""

    def __init__(
        self, status: int, code: str, message: str, headers: Headers | None = None
    ) -> None:
        super().__init__(message, code=code)
        self.status = status
        self.headers = list(headers or [])


def status_of(fault: Fault) -> int:
    if isinstance(fault, ProtocolFault):
        return fault.status
    return next(STATUS[kind] for kind in type(fault).__mro__ if kind in STATUS)


def body_of(fault: Fault, request_id: str) -> dict[str, Any]:
    error: dict[str, Any] = {"code": fault.code, "message": fault.message}
    if fault.target:
        error["target"] = fault.target
    if fault.details:
        error["details"] = [_detail(one) for one in fault.details[:MOST_DETAILS]]
    error["additionalInfo"] = [{"type": "RequestId", "info": {"requestId": request_id}}]
    return {"error": error}


def answer(fault: Fault, context: RequestContext) -> Answer:
    headers: Headers = []
    if isinstance(fault, ProtocolFault):
        headers += fault.headers
    if isinstance(fault, Unauthenticated):
        headers.append((b"www-authenticate", _challenge(fault)))
    if fault.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(fault.retry_after))).encode()))
    status = status_of(fault)
    who = context.principal
    telemetry.note_refusal(
        "api",
        status,
        fault.code,
        fault.message,
        context.address,
        principal=who.id if who else None,
        request_id=context.request_id,
    )
    if status >= 500:
        log.error(
            "request failed",
            code=fault.code,
            context=fault.context,
            request_id=context.request_id,
            exc_info=fault if status == 500 else None,
        )
    return json_answer(context, status, body_of(fault, context.request_id), headers)


def answer_to(request: Request[Any, Any, Any], error: Exception) -> Answer:
    """Litestar's exception handler for everything that was raised."""
    context = of(request.scope)
    match error:
        case Fault():
            return answer(error, context)
        case HTTPException() if error.status_code < 500:
            return answer(
                ProtocolFault(error.status_code, "InvalidRequest", "The request was refused."),
                context,
            )
        case _:
            log.error("request failed", request_id=context.request_id, exc_info=error)
            return answer(Internal("An internal error occurred."), context)


def _challenge(fault: Fault) -> bytes:
    if fault.code == "AuthenticationFailed":
        return b'Bearer realm="muster"'
    return b'Bearer realm="muster", error="invalid_token"'


def _detail(one: FieldError) -> dict[str, str]:
    return {"code": one.code, "message": one.message, "target": one.target}
