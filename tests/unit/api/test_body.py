"""Bodies are read strictly, and quickly also when they are hostile."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import body
from api.errors import ProtocolFault
from muster.core.errors import Fault, InvalidRequest
from tests.support.requests import request_context

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=20)
)
KEYS = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=8)
OBJECTS = st.dictionaries(
    KEYS,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_size=5,
)


@given(OBJECTS, st.booleans())
def test_what_json_can_say_comes_through_unchanged(value: dict[str, Any], ascii: bool) -> None:
    assert body.parse(json.dumps(value, ensure_ascii=ascii).encode()) == value


@given(st.binary(max_size=200))
def test_no_bytes_surprise_the_parser(raw: bytes) -> None:
    try:
        assert isinstance(body.parse(raw), dict)
    except InvalidRequest as refused:
        assert refused.code == "InvalidRequestContent"


@given(st.text(alphabet='{}[]":,\\u0d81aeE+-.1 \n\tntrf', max_size=60))
def test_nothing_that_looks_like_json_does_either(text: str) -> None:
    try:
        assert isinstance(body.parse(text.encode()), dict)
    except InvalidRequest as refused:
        assert refused.code == "InvalidRequestContent"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1, "a": 2}',
        b'{"x": {"a": 1, "\\u0061": 2}}',
        b'\xef\xbb\xbf{"a": 1}',
        '{"a": 1}'.encode("utf-16"),
        '{"a": 1}'.encode("utf-32-le"),
        b'{"a": "\\ud800"}',
        b'{"\\udc00": 1}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\\u0000"}',
        b'{"a": "x\x00y"}',
        b'{"a": "x\ny"}',
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b'{"a": 1e400}',
        b'{"a": -1e400}',
        b'{"a": 9223372036854775808}',
        b'{"a": -9223372036854775809}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": -0}',
        b'{"a": -0.0}',
        b"{'a': 1}",
        b'{"a": 01}',
        b'{"a": 1,}',
        b'{"a": 1} {}',
        b"{}//",
        b"",
    ],
)
def test_what_two_parsers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidRequest) as refused:
        body.parse(raw)

    assert refused.value.code == "InvalidRequestContent"


def test_the_edges_are_inside() -> None:
    text = (
        b'{"a": 9223372036854775807, "b": -9223372036854775808, "c": "\\ud83d\\ude00", "d": 1e308}'
    )

    assert body.parse(text)["c"] == "😀"


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


def test_nesting_is_limited() -> None:
    assert body.parse(nested(body.MOST_DEPTH))
    with pytest.raises(InvalidRequest, match="nested"):
        body.parse(nested(body.MOST_DEPTH + 1))


@pytest.mark.parametrize(
    "raw",
    [
        nested(10_000),
        b"[" * 1_000_000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'"' + b'\\"' * 900_000,
        b'{"a":"' + b"[{" * 900_000,
        b'{"' + b"\\" * 1_900_000,
    ],
    ids=["objects", "arrays", "closed", "escapes", "in a string", "backslashes"],
)
def test_hostile_nesting_is_refused_at_once(raw: bytes) -> None:
    began = time.perf_counter()

    with pytest.raises(InvalidRequest):
        body.parse(raw)

    assert time.perf_counter() - began < 0.2


def test_brackets_in_strings_do_not_count() -> None:
    assert body.parse(b'{"a": "' + b'[{\\"' * 500 + b'"}')


def test_members_of_one_object_are_limited() -> None:
    many = {f"k{n}": n for n in range(body.MOST_KEYS)}

    assert body.parse(json.dumps(many).encode()) == many
    with pytest.raises(InvalidRequest, match="members"):
        body.parse(json.dumps(many | {"one": "more"}).encode())


def arriving(*chunks: bytes) -> Any:
    left = list(chunks)

    async def receive() -> dict[str, Any]:
        chunk = left.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(left)}

    return receive


async def test_the_size_is_counted_while_it_arrives() -> None:
    half = b"x" * (body.MOST_BYTES // 2)

    assert len(await body.read(request_context("PUT"), arriving(half, half))) == body.MOST_BYTES
    with pytest.raises(ProtocolFault) as refused:
        await body.read(request_context("PUT"), arriving(half, half, b"x"))

    assert (refused.value.status, refused.value.code) == (413, "RequestContentTooLarge")
    assert str(body.MOST_BYTES) in refused.value.message


async def test_a_promised_size_is_refused_before_anything_is_read() -> None:
    given = request_context("PUT", headers={"Content-Length": str(body.MOST_BYTES + 1)})

    with pytest.raises(ProtocolFault):
        await body.read(given, arriving())


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "gzip, identity"])
async def test_compressed_bodies_are_refused(encoding: str) -> None:
    with pytest.raises(ProtocolFault) as refused:
        await body.read(
            request_context("PUT", headers={"Content-Encoding": encoding}), arriving(b"{}")
        )

    assert refused.value.status == 415


@pytest.mark.parametrize(
    "kind",
    ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'],
)
def test_json_in_utf_8_is_welcome(kind: str) -> None:
    assert body.decode(request_context("PUT", headers={"Content-Type": kind}), b"{}") == {}


@pytest.mark.parametrize(
    "kind", ["", "text/xml", "application/json; charset=utf-16", "application/jsonx", "text/json"]
)
def test_other_types_are_refused(kind: str) -> None:
    with pytest.raises(ProtocolFault) as refused:
        body.decode(request_context("PUT", headers={"Content-Type": kind}), b"{}")

    assert refused.value.code == "UnsupportedMediaType"


def test_an_empty_body_is_enough_where_none_is_required() -> None:
    assert body.decode(request_context("POST"), b"", required=False) == {}
    with pytest.raises(Fault):
        body.decode(request_context("PUT"), b"")
