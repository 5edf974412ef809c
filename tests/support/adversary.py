"""Requests made to cost much: each input of a declared operation, at any size.

`inputs(endpoint)` yields them all: the names in the path, each query parameter, headers, and every
property of the body by its declared type. Scripts are left out: their parser has limits of its own.
"""

import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import inspect as types

from api import examples
from api.body import MOST_BYTES
from api.middleware import LARGEST_HEADERS, LONGEST_URL
from api.endpoint import Endpoint, Kind
from tests.support import arm

SCRIPTS = {"properties.action.value", "sql"}
TEXTS = ("a", " ", "/a", "%", "9")
IN_QUERIES = (*TEXTS, "and ", "a,", "'", "{")
PAGING = ("$top", "$skipToken")
CHUNK = 64 * 1024


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str = f"api-version={arm.SQL}"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""


@dataclass(frozen=True)
class Input:
    """`make` gives a request of about so many bytes in this place; `largest` is the most allowed."""

    name: str
    largest: int
    make: Callable[[int], Request]


def inputs(endpoint: Endpoint, names: dict[str, str]) -> Iterator[Input]:
    path = "".join(f"/{_name(s, names)}" if s.is_name else f"/{s.text}" for s in endpoint.path)
    base = _body(endpoint)
    plain = Request(endpoint.method, path, body=b"" if base is None else msgspec.json.encode(base))
    yield from _in_url(endpoint, plain)
    yield from _in_headers(endpoint, plain)
    if base is not None:
        yield from _in_body(endpoint, plain, base)


async def cpu(app: Any, request: Request) -> tuple[float, int]:
    """Seconds of CPU of this thread, on which the event loop runs, and the status."""
    chunks = [request.body[at : at + CHUNK] for at in range(0, len(request.body), CHUNK)] or [b""]
    messages = [
        {"type": "http.request", "body": chunk, "more_body": number < len(chunks)}
        for number, chunk in enumerate(chunks, start=1)
    ]
    status = 0

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": request.method, "path": request.path, "raw_path": request.path.encode(),
        "root_path": "", "query_string": request.query.encode(), "client": ("127.0.0.1", 9),
        "server": (arm.HOST, 80), "state": {},
        "headers": [
            (b"host", arm.HOST.encode()), (b"authorization", f"Bearer {arm.TOKEN}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(request.body)).encode()), *request.headers,
        ],
    }  # fmt: skip
    began = time.thread_time()
    with contextlib.suppress(ConnectionError):
        await app(scope, receive, send)
    return time.thread_time() - began, status


def _in_url(endpoint: Endpoint, plain: Request) -> Iterator[Input]:
    room = LONGEST_URL - len(plain.path) - len(plain.query) - 100
    head, _, _ = plain.path.rpartition("/")
    for text in ("a", "%41", "..", ":"):
        yield Input(
            f"the last name of the path, of {text!r}",
            room,
            lambda n, text=text: replace(plain, path=f"{head}/{text * (n // len(text))}"),
        )
    yield Input(
        "a long query parameter that is unknown",
        room,
        lambda n: replace(plain, query=f"{plain.query}&{'a' * n}=1"),
    )
    for name in (*(each.name for each in endpoint.query), *(PAGING if endpoint.paged else ())):
        for text in IN_QUERIES:
            value = quote(text, safe="")
            yield Input(
                f"query {name} of {text!r}",
                room,
                lambda n, name=name, value=value: replace(
                    plain, query=f"{plain.query}&{quote(name)}={value * (n // len(value))}"
                ),
            )
    yield Input(
        "many query parameters",
        room,
        lambda n: replace(plain, query="&".join([plain.query, *(f"p{i}=" for i in range(n // 7))])),
    )


def _in_headers(endpoint: Endpoint, plain: Request) -> Iterator[Input]:
    room = LARGEST_HEADERS - 300
    repeated = {b"if-match": b'"a",', b"if-none-match": b'W/"a", ', b"idempotency-key": b"a"}
    for name, unit in repeated.items():
        yield Input(
            f"header {name.decode()}",
            room,
            lambda n, name=name, unit=unit: replace(
                plain, headers=((name, unit * (n // len(unit))),)
            ),
        )
    yield Input(
        "many headers",
        room,
        lambda n: replace(plain, headers=tuple((f"x-{i}".encode(), b"") for i in range(n // 10))),
    )


def _in_body(endpoint: Endpoint, plain: Request, base: Any) -> Iterator[Input]:
    room = MOST_BYTES - len(plain.body) - 200
    places = [("", None)]
    if endpoint.act and endpoint.act.takes:
        places += list(_places(types.type_info(endpoint.act.takes), ""))
    elif endpoint.type.properties and endpoint.verb:
        prefix = "" if endpoint.type.flat else "properties"
        places += list(_places(types.type_info(endpoint.type.properties), prefix))
        if endpoint.type.parts.tags:
            places += [(name, None) for name in ("tags", "sku", "identity")]
    for place, info in places:
        if place in SCRIPTS:
            continue
        for kind, value in _values(info):
            yield Input(
                f"body {place or '(all)'}: {kind}",
                room,
                lambda n, place=place, value=value: replace(
                    plain, body=_encoded(_put(base, place, value(n)))
                ),
            )


def _places(info: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every property of a struct, those of structs in lists as well."""
    match info:
        case types.UnionType():
            for each in info.types:
                if not isinstance(each, types.NoneType):
                    yield from _places(each, place)
        case types.StructType():
            yield place, info
            for each in info.fields:
                yield from _places(each.type, f"{place}.{each.encode_name}".lstrip("."))
        case types.ListType():
            yield place, info
            yield from _places(info.item_type, f"{place}.0")
        case types.DictType() | types.StrType() | types.AnyType():
            yield place, info
        case _:
            pass


def _values(info: Any) -> Iterator[tuple[str, Callable[[int], Any]]]:
    match info:
        case types.StrType():
            yield from ((f"text of {t!r}", lambda n, t=t: t * (n // len(_json(t)))) for t in TEXTS)
        case types.ListType():
            unit = _least(info.item_type)
            yield "a list of equal entries", lambda n: [unit] * (n // (len(_json(unit)) + 3))
            if isinstance(unit, str):
                yield "a list of entries", lambda n: [f"e{i:07}" for i in range(n // 12)]
            if isinstance(unit, dict):
                size = len(_json(unit)) + 12
                yield "a list of entries", lambda n: [_other(unit, i) for i in range(n // size)]
        case _:
            yield "many members", lambda n: {f"administratorLogim{i:06}": 1 for i in range(n // 30)}
            yield "texts as members", lambda n: {f"k{i:06}": "v" for i in range(n // 14)}
            yield "a long name", lambda n: {"k" * n: "v"}
            yield "nested lists", lambda n: _nested(n, "[", "]")
            yield "nested objects", lambda n: _nested(n // 5, '{"a":', "}")
            yield "a list of objects", lambda n: [{"a": 1}] * (n // 8)
            yield "numbers", lambda n: [10**15] * (n // 17)


def _least(info: Any) -> Any:
    """A value of the type that holds every property of a struct."""
    match info:
        case types.UnionType():
            return _least(next(t for t in info.types if not isinstance(t, types.NoneType)))
        case types.StructType():
            return {each.encode_name: _least(each.type) for each in info.fields}
        case types.ListType():
            return []
        case types.DictType():
            return {}
        case types.LiteralType():
            return info.values[0]
        case types.IntType() | types.FloatType():
            return 1
        case types.BoolType():
            return True
        case _:
            return "a"


def _other(unit: dict[str, Any], number: int) -> dict[str, Any]:
    return {k: f"a{number:06}" if v == "a" else v for k, v in unit.items()}


class _Text(msgspec.Struct):
    raw: str


def _nested(depth: int, opening: str, closing: str) -> Any:
    return _Text(opening * (depth // 2) + closing * (depth // 2))


def _put(base: Any, place: str, value: Any) -> Any:
    if not place:
        return value
    made = copy.deepcopy(base)
    at = made
    *above, last = place.split(".")
    for name in above:
        key: Any = 0 if name == "0" else name
        if isinstance(at, list):
            at[:] = at[:1] or [{}]
        elif not isinstance(at.get(key), dict | list):
            at[key] = {}
        at = at[0] if isinstance(at, list) else at[key]
    if last == "0":
        return made
    if isinstance(at, list):
        at[:] = [{last: value}]
    else:
        at[last] = value
    return made


def _encoded(value: Any) -> bytes:
    """JSON; a text that is JSON already is put in as it is."""
    return _spliced(value) if _holds_text(value) else msgspec.json.encode(value)


def _holds_text(value: Any) -> bool:
    match value:
        case _Text():
            return True
        case dict():
            return any(_holds_text(each) for each in value.values()) if len(value) < 100 else False
        case list():
            return bool(value) and _holds_text(value[0])
    return False


def _spliced(value: Any) -> bytes:
    raw: list[str] = []

    def mark(each: Any) -> Any:
        match each:
            case _Text():
                raw.append(each.raw)
                return "\0raw\0"
            case dict():
                return {k: mark(v) for k, v in each.items()}
            case list():
                return [mark(v) for v in each]
        return each

    text = json.dumps(mark(value))
    return text.replace(json.dumps("\0raw\0"), raw[0]).encode()


def _body(endpoint: Endpoint) -> Any:
    if endpoint.act:
        return dict(endpoint.act.example) if endpoint.act.takes else None
    if endpoint.kind in {Kind.PUT, Kind.PATCH}:
        return examples.request(endpoint)
    return None


def _name(segment: Any, names: dict[str, str]) -> str:
    return names.get(segment.text) or examples.name(segment)


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
