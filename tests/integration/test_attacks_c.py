"""Attack list, group C: the protocol. Numbers are those of the list."""

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from muster.core.settings import Settings
from tests.support import arm
from tests.support import raw_http

VERSION = {"api-version": arm.SQL}
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def client(settings: Settings) -> Any:
    async with arm.client(settings) as made:
        await arm.fill(made)
        yield made


@pytest.fixture
async def server(settings: Settings) -> Any:
    async with arm.server(settings) as made:
        yield made


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, arm.error(answer)


async def test_32_33_versions(client: httpx.AsyncClient) -> None:
    missing = await client.get(arm.SERVER)
    unknown = await client.get(arm.SERVER, params={"api-version": "1999-01-01"})
    core = await client.get(arm.GROUP, params={"api-version": "nonsense"})

    assert code(missing) == (400, "MissingApiVersionParameter")
    assert code(unknown) == (400, "NoRegisteredProviderFound")
    assert "2025-01-01" in unknown.json()["error"]["message"]
    assert code(core) == (400, "InvalidApiVersionParameter")


async def test_34_a_wrong_verb(client: httpx.AsyncClient) -> None:
    answer = await client.post(arm.SERVER, params=VERSION)

    assert code(answer) == (405, "HttpMethodNotSupported")
    assert answer.headers["allow"] == "DELETE, GET, PATCH, PUT"


MEDIA_TYPES = ["text/xml", "application/json; charset=utf-16", "text/plain", None]


async def test_35_another_media_type(client: httpx.AsyncClient) -> None:
    for kind in MEDIA_TYPES:
        headers = {"Content-Type": kind} if kind else {}
        answer = await client.put(arm.GROUP, params=VERSION, content=b"{}", headers=headers)

        assert code(answer) == (415, "UnsupportedMediaType")


BAD_JSON = [
    b'{"location":',
    b'{"location": NaN}',
    b'{"location": "a", "location": "b"}',
    b'\xef\xbb\xbf{"location": "local"}',
    '{"location": "local"}'.encode("utf-16"),
    b'{"location": "\\ud800"}',
    b'{"location": "a\\u0000b"}',
    b"[]",
    b"null",
    b'"x"',
    b"",
]


async def test_36_37_bad_json(client: httpx.AsyncClient) -> None:
    for body in BAD_JSON:
        answer = await client.put(arm.GROUP, params=VERSION, content=body, headers=JSON)

        assert code(answer) == (400, "InvalidRequestContent")


NUMBERS = ["1e400", "9223372036854775808", "-0", '"1"', "1.5", "true"]


async def test_38_numbers(client: httpx.AsyncClient) -> None:
    for number in NUMBERS:
        body = f'{{"location": "local", "properties": {{"maxConnections": {number}}}}}'
        answer = await client.put(arm.SERVER, params=VERSION, content=body, headers=JSON)

        assert code(answer) == (400, "InvalidRequestContent")


async def test_39_etags(client: httpx.AsyncClient) -> None:
    etag = (await client.get(arm.GROUP, params=VERSION)).headers["etag"]
    body = {"location": "local", "tags": {"a": "1"}}

    async def put(path: str = arm.GROUP, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await client.put(path, params=VERSION, json=body, headers=named)).status_code

    assert await put(If_Match='"stale"') == 412
    assert await put(If_None_Match="*") == 412
    assert await put(arm.GROUP + "x", If_Match="*") == 412
    assert await put(If_Match=etag) == 200
    assert await put(If_Match=etag) == 412
    fresh = (await client.get(arm.GROUP, params=VERSION)).headers["etag"]
    not_modified = await client.get(arm.GROUP, params=VERSION, headers={"If-None-Match": fresh})
    assert (not_modified.status_code, not_modified.content) == (304, b"")
    stale = await client.get(arm.GROUP, params=VERSION, headers={"If-None-Match": etag})
    assert stale.status_code == 200


async def test_40_42_one_operation_at_a_time(client: httpx.AsyncClient) -> None:
    current = (await client.get(arm.SERVER, params=VERSION)).json()
    body = {"location": "local", "tags": {"a": "1"}, "properties": current["properties"]}

    running = await client.put(arm.SERVER, params=VERSION, json=body)
    assert code(running) == (409, "AnotherOperationInProgress")
    assert "retry-after" not in running.headers
    assert (await client.delete(arm.SERVER, params=VERSION)).status_code == 202
    deleting = await client.put(arm.SERVER, params=VERSION, json=body)
    assert code(deleting) == (409, "Conflict")


async def test_41_idempotency_keys(client: httpx.AsyncClient) -> None:
    path = arm.GROUP.replace("g1", "keyed")
    headers = {"Idempotency-Key": "k-1"}

    first = await client.put(path, params=VERSION, json={"location": "local"}, headers=headers)
    again = await client.put(path, params=VERSION, json={"location": "local"}, headers=headers)
    other = await client.put(path, params=VERSION, json={"location": "LOCAL"}, headers=headers)
    long = await client.put(path, params=VERSION, json={}, headers={"Idempotency-Key": "k" * 256})

    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert code(other) == (409, "IdempotencyKeyMismatch")
    assert code(long) == (400, "InvalidIdempotencyKey")


HEAD = b"Host: localhost\r\nAuthorization: Bearer " + arm.TOKEN.encode() + b"\r\n"
GET = b"GET /livez HTTP/1.1\r\n" + HEAD


SMUGGLING = {
    "cl-te": b"POST /x HTTP/1.1\r\n"
    + HEAD
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + GET
    + b"\r\n",
    "te-cl": b"POST /x HTTP/1.1\r\n"
    + HEAD
    + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "xchunked": b"POST /x HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "te list": b"POST /x HTTP/1.1\r\n"
    + HEAD
    + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST /x HTTP/1.1\r\n"
    + HEAD
    + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "signed length": b"POST /x HTTP/1.1\r\n" + HEAD + b"Content-Length: +4\r\n\r\nabcd",
    "negative length": b"POST /x HTTP/1.1\r\n" + HEAD + b"Content-Length: -1\r\n\r\n",
    "chunk lf": b"POST /x HTTP/1.1\r\n"
    + HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
    "obs-fold": GET + b"X-A: b\r\n c\r\n\r\n",
    "bare lf": GET.replace(b"\r\n", b"\n") + b"\n",
    "lf header": GET + b"X: y\n\r\n",
    "bare cr": GET + b"X: a\rb\r\n\r\n",
    "space": GET + b"X : y\r\n\r\n",
    "nul": GET + b"X: a\x00b\r\n\r\n",
    "utf-8 path": GET.replace(b"/livez", "/é".encode()) + b"\r\n",
    "space in path": GET.replace(b"/livez", b"/a b") + b"\r\n",
    "method": GET.replace(b"GET", b"NOPE") + b"\r\n",
    "tls on http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


async def test_43_what_could_smuggle_is_refused_and_the_line_cut(server: httpx.AsyncClient) -> None:
    for name, request in SMUGGLING.items():
        async with raw_http.connect(server) as line:
            await line.send(request)

            status, headers, body = await line.answer()

            assert (status, body["error"]["code"]) == (400, "InvalidRequest"), name
            assert headers["connection"] == "close", name
            assert await line.closed(), name


async def test_43_pipelined_requests_are_answered_in_order(server: httpx.AsyncClient) -> None:
    async with raw_http.connect(server) as line:
        await line.send(GET + b"\r\n" + GET.replace(b"/livez", b"/nope") + b"\r\n")

        assert (await line.answer())[0] == 200
        assert (await line.answer())[0] == 404


async def test_44_hosts(settings: Settings) -> None:
    settings = replace(
        arm.local(settings), public_url="https://api.example", allowed_hosts=("inner:8080",)
    )
    async with arm.application(settings) as app, arm.calling(app) as client:

        async def ask(host: str) -> httpx.Response:
            return await client.put(
                arm.SUBSCRIPTION, params=VERSION, json={}, headers={"Host": host}
            )

        assert code(await ask("evil.example")) == (400, "InvalidHostHeader")
        assert code(await ask("api.example@evil.example")) == (400, "InvalidHostHeader")
        assert (await ask("api.example")).status_code == 201
        assert (await ask("inner:8080")).status_code == 200
        headers = {"Host": "inner:8080", "X-Forwarded-Host": "evil.example"}
        for name in ("a", "b"):
            await client.put(
                f"{arm.SUBSCRIPTION}/resourceGroups/{name}",
                params=VERSION,
                json={"location": "local"},
                headers={"Host": "inner:8080"},
            )
        page = await client.get(
            f"{arm.SUBSCRIPTION}/resourceGroups", params=VERSION | {"$top": "1"}, headers=headers
        )
        assert page.json()["nextLink"].startswith("https://api.example/subscriptions/s1/")


async def test_no_answer_shows_its_insides(settings: Settings) -> None:
    """A failure inside is told to the log only."""

    async def broken(*_: Any) -> None:
        raise RuntimeError("select secret from /var/lib where password = 'x'")

    async with arm.application(arm.local(settings), authorize=broken) as app:
        async with arm.calling(app) as client:
            answer = await client.get(arm.SERVER, params=VERSION)

    assert code(answer) == (500, "InternalServerError")
    assert not any(
        word in answer.text for word in ("select", "/var", "password", "Traceback", "RuntimeError")
    )


async def test_no_database_is_503(settings: Settings) -> None:
    async with arm.plane(arm.local(settings)) as plane:
        app = arm.build(plane)
        await plane.db.close()
        async with arm.calling(app) as client:
            answer = await client.get(arm.SERVER, params=VERSION)
            ready = await client.get("/readyz")
            alive = await client.get("/livez")

    assert code(answer) == (503, "ServiceUnavailable")
    assert int(answer.headers["retry-after"]) >= 1
    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable"})
    assert alive.status_code == 200


async def test_unknown_properties_are_named(client: httpx.AsyncClient) -> None:
    body = {"location": "local", "properties": {"adminstratorLogin": "x", "maxConnections": "y"}}
    answer = await client.put(arm.SERVER, params=VERSION, content=json.dumps(body), headers=JSON)

    assert answer.status_code == 400
    targets = [each["target"] for each in answer.json()["error"]["details"]]
    assert targets == ["properties.adminstratorLogin", "properties.maxConnections"]
