"""Request bodies as JSON objects, read strictly: what two parsers could read differently is refused."""

import asyncio
import json
import math
import re
from typing import Any, NoReturn

from litestar.types import Receive

from api.errors import ProtocolFault
from api.request_context import RequestContext
from muster.core.errors import InvalidRequest

MOST_BYTES = 2 * 1024 * 1024
MOST_DEPTH = 32
MOST_KEYS = 1000
MOST_CONTAINERS = 25_000  # objects and arrays; the largest target group has 10 000 members
MOST_VALUES = 150_000
PATIENCE = 20.0  # seconds for a body to arrive; below the limit of a request

TYPE = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?\Z', re.IGNORECASE)
STRINGS = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)  # an open end counts: one pass for all
OPEN_CLOSE = re.compile(r"[\[\]{}]")
ESCAPED_TROUBLE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
UNWELCOME = re.compile("[\x00\ud800-\udfff]")
SMALLEST, LARGEST = -(2**63), 2**63 - 1


async def read(context: RequestContext, receive: Receive) -> bytes:
    """The bytes of the body, counted while they arrive; Content-Length is not trusted."""
    headers = context.headers
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise ProtocolFault(415, "UnsupportedMediaType", "A compressed body is not accepted.")
    if int(headers.get(b"content-length", b"0")) > MOST_BYTES:
        raise _too_large()
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                message: Any = await receive()
                if message["type"] == "http.disconnect":
                    raise InvalidRequest("The client left before its body had arrived.")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > MOST_BYTES:
                    raise _too_large()
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
    except TimeoutError:
        raise ProtocolFault(408, "RequestTimeout", "The body did not arrive in time.") from None


def decode(context: RequestContext, raw: bytes, *, required: bool = True) -> dict[str, Any]:
    """The JSON object in a body; an empty body is an empty object where none is required."""
    if not raw:
        if required:
            _refuse("A JSON object is required as the body.")
        return {}
    media_type = context.header(b"content-type") or ""
    if not TYPE.match(media_type.strip()):
        raise ProtocolFault(
            415, "UnsupportedMediaType", "The body must be application/json in UTF-8."
        )
    return parse(raw)


def parse(raw: bytes) -> dict[str, Any]:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("The body is not valid UTF-8.")
    _check_structure(text)
    try:
        value = DECODER.decode(text)
    except json.JSONDecodeError as error:
        _refuse(f"The body is not valid JSON: {error.msg} at position {error.pos}.")
    except RecursionError:
        _refuse(f"The body is nested deeper than {MOST_DEPTH}.")
    if not isinstance(value, dict):
        _refuse("The body must be a JSON object.")
    if ESCAPED_TROUBLE.search(text):
        _check_strings(value)
    return value


def _check_structure(text: str) -> None:
    """Before anything is built: depth and number of values decide what the rest costs."""
    containers = text.count("[") + text.count("{")
    if containers <= MOST_DEPTH and text.count(",") < MOST_VALUES:
        return
    outside = STRINGS.sub("", text)
    if outside.count("[") + outside.count("{") > MOST_CONTAINERS:
        _refuse(f"The body has more than {MOST_CONTAINERS} objects and arrays.")
    if outside.count(",") >= MOST_VALUES:
        _refuse(f"The body has more than {MOST_VALUES} values.")
    depth = 0
    for bracket in OPEN_CLOSE.finditer(outside):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MOST_DEPTH:
            _refuse(f"The body is nested deeper than {MOST_DEPTH}.")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        _refuse(f"An object in the body has more than {MOST_KEYS} members.")
    built = dict(pairs)
    if len(built) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _refuse(f"The member '{twice[:100]}' is given more than once.")
    return built


def _integer(text: str) -> int:
    if text == "-0" or len(text) > 20 or not SMALLEST <= (value := int(text)) <= LARGEST:
        _refuse(f"The number {text[:30]} is not a 64-bit integer.")
    return value


def _number(text: str) -> float:
    value = float(text)
    if math.isinf(value) or (value == 0 and text.startswith("-")):
        _refuse(f"The number {text[:30]} is out of range.")
    return value


def _constant(text: str) -> NoReturn:
    _refuse(f"{text} is not JSON.")


def _check_strings(value: Any) -> None:
    match value:
        case str():
            if UNWELCOME.search(value):
                _refuse("A string in the body holds a NUL or half of a surrogate pair.")
        case dict():
            for name, member in value.items():
                _check_strings(name)
                _check_strings(member)
        case list():
            for member in value:
                _check_strings(member)


def _too_large() -> ProtocolFault:
    return ProtocolFault(
        413, "RequestContentTooLarge", f"The body is larger than the limit of {MOST_BYTES} bytes."
    )


def _refuse(message: str) -> NoReturn:
    raise InvalidRequest(message, code="InvalidRequestContent")


DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_integer,
    parse_float=_number,
    parse_constant=_constant,
)
