"""A request context as the middleware makes it, for tests of single parts."""

from typing import Any

from api.request_context import RequestContext
from muster.core.clock import Clock


def request_context(
    method: str = "GET",
    path: str = "/",
    *,
    query: bytes = b"",
    headers: dict[str, str] | None = None,
    pairs: list[tuple[bytes, bytes]] | None = None,
    client: str = "10.0.0.1",
    scheme: str = "http",
) -> RequestContext:
    given = (
        pairs
        if pairs is not None
        else [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    )
    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "headers": given,
        "client": (client, 1234),
        "scheme": scheme,
        "state": {},
    }
    made = RequestContext(scope, Clock())
    scope["state"]["context"] = made
    return made
