"""The raw path becomes a parsed resource id, once; no later layer reads the path again.

Fixed segments match in any case and come out in their canonical form; each name is decoded exactly
once and keeps its case. What the table does not know is refused, with a reason, by the app.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from urllib.parse import unquote_to_bytes

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Receive, Scope, Send

from api import query
from api.endpoint import Endpoint
from api.errors import ProtocolFault
from api.request_context import of
from muster.core.errors import Fault, InvalidRequest, NotFound
from muster.core.ids import Pair, ResourceId

BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
UNWELCOME = re.compile(r"[\x00-\x1f\x7f-\x9f/]")
REFUSED = "/refused"
REMEMBERED = 4096
SHORT = 300


@dataclass
class Node:
    canonical: str = ""
    fixed: dict[str, "Node"] = field(default_factory=dict)  # by lower case
    name: "Node | None" = None
    endpoints: dict[str, Endpoint] = field(default_factory=dict)  # by method


@dataclass(frozen=True)
class Match:
    endpoint: Endpoint
    id: ResourceId
    names: dict[str, str]  # in the path after the id


class Table:
    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.root = Node()
        self._remembered = lru_cache(maxsize=REMEMBERED)(self._match)
        for endpoint in endpoints:
            self._insert(endpoint)

    def _insert(self, endpoint: Endpoint) -> None:
        nodes = [self.root]
        for segment in endpoint.path:
            if segment.is_name and not segment.names:
                nodes = [_name_below(node) for node in nodes]
            else:
                texts = segment.names or (segment.text,)
                nodes = [
                    node.fixed.setdefault(text.lower(), Node(canonical=text))
                    for node in nodes
                    for text in texts
                ]
        for node in nodes:
            assert endpoint.method not in node.endpoints, endpoint.template
            node.endpoints[endpoint.method] = endpoint

    def match(self, method: str, raw: bytes) -> Match:
        """Raises the refusal: 400 for what is no path of ours at all, 404, 405."""
        # Clients poll; what was found is remembered, with all that the id has worked out since.
        return self._remembered(method, raw) if len(raw) <= SHORT else self._match(method, raw)

    def _match(self, method: str, raw: bytes) -> Match:
        node, segments = self._walk(raw)
        endpoint = node.endpoints.get(method)
        if endpoint is None:
            if not node.endpoints:
                raise _unknown(segments)
            raise _not_allowed(method, node)
        pairs: list[Pair] = list(zip(segments[::2], segments[1::2], strict=False))
        begin = 2 * endpoint.depth
        after = zip(endpoint.path[begin:], segments[begin:], strict=True)
        names = {segment.text: text for segment, text in after if segment.is_name}
        return Match(endpoint, ResourceId(tuple(pairs[: endpoint.depth])), names)

    def _walk(self, raw: bytes) -> tuple[Node, list[str]]:
        first, *rest = raw.split(b"/")
        if first or not rest:
            raise _malformed("it must begin with a slash")
        if len(rest) > 1 and not rest[-1]:
            rest.pop()  # one slash at the end changes nothing
        names = [_decode(segment) for segment in rest]
        node = self.root
        segments: list[str] = []
        for text in names:
            below = node.fixed.get(text.lower())
            if below is not None:
                segments.append(below.canonical)
            elif node.name is not None:
                below = node.name
                segments.append(text)
            else:
                raise _unknown([*segments, text])
            node = below
        return node, segments


class PathMiddleware:
    """Rewrites the path to the endpoint's own; what is refused goes to one route that says so."""

    def __init__(self, app: ASGIApp, table: Table, probes: frozenset[bytes]) -> None:
        self._app = app
        self._table = table
        self._probes = probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == ScopeType.HTTP:
            context = of(scope)
            raw = context.raw_path
            try:
                if raw not in self._probes:
                    match = self._table.match(context.method, raw)
                    context.endpoint = match.endpoint
                    context.id = match.id
                    context.names = match.names
                    context.query = query.parse(scope["query_string"])
                    scope["path"] = "/" + match.endpoint.operation_id
            except Fault as fault:
                scope["path"] = REFUSED
                scope["state"]["refusal"] = fault
        await self._app(scope, receive, send)


def _name_below(node: Node) -> Node:
    if node.name is None:
        node.name = Node()
    return node.name


def _decode(segment: bytes) -> str:
    if b"%" in segment:
        if BAD_ESCAPE.search(segment):
            raise _malformed("a percent sign is not followed by two hexadecimal digits")
        segment = unquote_to_bytes(segment)
    try:
        text = segment.decode("utf-8")
    except UnicodeDecodeError:
        raise _malformed("it is not valid UTF-8") from None
    if not text or text in {".", ".."}:
        raise _malformed("a segment is empty, '.' or '..'")
    if UNWELCOME.search(text):
        raise _malformed("a segment holds a slash or a control character")
    return text


def _malformed(why: str) -> InvalidRequest:
    return InvalidRequest(f"The path is not a resource id: {why}.", code="InvalidResourceId")


def _unknown(segments: list[str]) -> Fault:
    namespaces = [name for key, name in pairwise(segments) if key == "providers"]
    text = "/" + "/".join(segment[:100] for segment in segments)
    if namespaces:
        return NotFound(f"No resource type is known at '{text[:500]}'.", code="InvalidResourceType")
    return NotFound(f"Nothing is known at '{text[:500]}'.", code="ResourceNotFound")


def _not_allowed(method: str, node: Node) -> ProtocolFault:
    allowed = ", ".join(sorted(node.endpoints))
    return ProtocolFault(
        405,
        "HttpMethodNotSupported",
        f"{method} is not supported here; supported: {allowed}.",
        [(b"allow", allowed.encode())],
    )
