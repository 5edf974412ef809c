"""The context of one request: its ids, headers, endpoint, resource id and principal."""

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from litestar.types import Scope

from muster.core.clock import Clock
from muster.core.errors import InvalidRequest
from muster.core.ids import TENANT, ResourceId
from workflows.model.resource import Principal

if TYPE_CHECKING:
    from api.endpoint import Endpoint

ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")
ONCE = frozenset(
    {
        b"authorization",
        b"host",
        b"content-type",
        b"content-length",
        b"content-encoding",
        b"if-match",
        b"if-none-match",
        b"idempotency-key",
        b"x-forwarded-host",
        b"x-forwarded-proto",
    }
)
EVERYWHERE = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
HSTS = (b"strict-transport-security", b"max-age=31536000")


class RequestContext:
    __slots__ = (
        "client_request_id",
        "correlation_id",
        "endpoint",
        "headers",
        "id",
        "method",
        "names",
        "principal",
        "query",
        "raw_path",
        "repeated",
        "request_id",
        "scope",
        "spent",
        "started",
        "status",
    )

    def __init__(self, scope: Any, clock: Clock) -> None:
        pairs = scope["headers"]
        headers: dict[bytes, bytes] = dict(pairs)
        self.scope: Scope = scope
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"]
        self.headers = headers
        self.repeated = _repeated(pairs) if len(headers) != len(pairs) else ()
        self.started = clock.monotonic()
        self.request_id = str(uuid4())
        header = headers.get(b"x-ms-correlation-request-id")
        self.correlation_id = (
            header.decode() if header is not None and ID.match(header) else self.request_id
        )
        header = headers.get(b"x-ms-client-request-id")
        self.client_request_id = header if header is not None and ID.match(header) else None
        self.principal: Principal | None = None
        self.endpoint: Endpoint | None = None
        self.id: ResourceId = TENANT
        self.names: dict[str, str] = {}  # in the path after the id
        self.query: dict[str, str] = {}
        self.spent: tuple[bytes, bytes] | None = None  # what the throttle says is left
        self.status = 0

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    def refuse_repeated(self) -> None:
        """A header with one meaning that comes twice means nothing."""
        if self.repeated:
            raise InvalidRequest(
                f"The header {self.repeated[0]} may be sent only once.", code="InvalidRequest"
            )

    def response_headers(self) -> list[tuple[bytes, bytes]]:
        request_id = self.request_id.encode()
        headers = [
            (b"x-ms-request-id", request_id),
            (b"x-ms-correlation-request-id", self.correlation_id.encode()),
            (b"x-ms-routing-request-id", b"MUSTER:" + request_id),
            *EVERYWHERE,
        ]
        if self.spent is not None:
            headers.append(self.spent)
        if self.client_request_id is not None and (
            self.headers.get(b"x-ms-return-client-request-id", b"").lower() == b"true"
        ):
            headers.append((b"x-ms-client-request-id", self.client_request_id))
        if self.scope["scheme"] == "https":
            headers.append(HSTS)
        return headers


def _repeated(pairs: list[tuple[bytes, bytes]]) -> tuple[str, ...]:
    seen: set[bytes] = set()
    twice: list[str] = []
    for name, _ in pairs:
        if name in seen and name in ONCE:
            twice.append(name.decode())
        seen.add(name)
    return tuple(twice)


def of(scope: Any) -> RequestContext:
    context: RequestContext = scope["state"]["context"]
    return context
