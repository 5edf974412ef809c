"""The outermost ASGI middleware: gives every request its ids and its limits, and counts it when it has finished."""

from functools import cache

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send
from prometheus_client import Counter, Histogram

from api.endpoint import Endpoint
from api.errors import ProtocolFault, answer
from api.request_context import RequestContext
from muster.core.clock import Clock
from muster.core.telemetry import REQUEST_SECONDS, REQUESTS

LONGEST_URL = 8 * 1024
LARGEST_HEADERS = 16 * 1024


class Middleware:
    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.WEBSOCKET:
            await send(
                {"type": "websocket.close", "code": 1003, "reason": "websockets are not supported"}
            )
            return
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        context = RequestContext(scope, self._clock)
        scope.setdefault("state", {})["context"] = context
        try:
            fault = _over_limit(context)
            if fault is not None:
                await answer(fault, context)(scope, receive, send)
            else:
                await self._app(scope, receive, send)
        finally:
            self._count(context)

    def _count(self, context: RequestContext) -> None:
        count, time = _meters(context.endpoint, context.status)
        count.inc()
        time.observe(self._clock.monotonic() - context.started)


@cache
def _meters(endpoint: Endpoint | None, status: int) -> tuple[Counter, Histogram]:
    """Labels come from the table alone, so that no caller can make up new ones."""
    method, kind = (endpoint.method, endpoint.type.arm_type) if endpoint else ("none", "none")
    return REQUESTS.labels(method, kind, status), REQUEST_SECONDS.labels(method, kind)


def _over_limit(context: RequestContext) -> ProtocolFault | None:
    if len(context.raw_path) + len(context.scope["query_string"]) > LONGEST_URL:
        return ProtocolFault(414, "RequestUriTooLong", f"A URL has at most {LONGEST_URL} bytes.")
    size = 0
    for name, value in context.scope["headers"]:
        size += len(name) + len(value) + 4
    if size > LARGEST_HEADERS:
        return ProtocolFault(
            431,
            "RequestHeaderFieldsTooLarge",
            f"All headers together have at most {LARGEST_HEADERS} bytes.",
        )
    return None
