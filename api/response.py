"""An HTTP response: a status, headers and bytes, sent in two messages."""

from typing import Any

import msgspec
from litestar.types import Receive, Scope, Send

from api.request_context import RequestContext

Headers = list[tuple[bytes, bytes]]

encode = msgspec.json.Encoder(decimal_format="number").encode
JSON = (b"content-type", b"application/json; charset=utf-8")
NO_BODY = frozenset({204, 304})


class Answer:
    """Also what Litestar wants of a response: an ASGI application."""

    __slots__ = ("body", "context", "headers", "status")

    def __init__(
        self,
        context: RequestContext,
        status: int,
        body: bytes = b"",
        headers: Headers | None = None,
    ) -> None:
        self.context = context
        self.status = status
        self.body = body
        self.headers: Headers = headers if headers is not None else []

    def to_asgi_response(self, *_: Any, **__: Any) -> "Answer":
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        headers = self.headers
        headers += self.context.response_headers()
        if self.status not in NO_BODY:
            headers.append((b"content-length", str(len(self.body)).encode()))
        self.context.status = self.status
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def json_answer(
    context: RequestContext, status: int, content: Any, headers: Headers | None = None
) -> Answer:
    answer = Answer(context, status, encode(content), headers)
    answer.headers.append(JSON)
    return answer
