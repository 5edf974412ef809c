"""Attack list, group D: limits. Numbers are those of the list."""

import asyncio
import contextlib
import gzip
import resource
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import asyncpg
import httpx
import pytest

from api import body, server as api_server
from muster.core.settings import Settings
from tests.support import arm
from tests.support import raw_http
from tests.support.jobs_fixture import start_jobs_api
from workflows import engine_requests

VERSION = {"api-version": arm.SQL}
JSON = {"Content-Type": "application/json"}
QUERY = f"?api-version={arm.SQL}".encode()
AUTHORIZATION = b"Authorization: Bearer " + arm.TOKEN.encode() + b"\r\n"


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, arm.error(answer)


@pytest.fixture
async def client(settings: Settings) -> Any:
    async with arm.client(settings) as made:
        await arm.fill(made)
        yield made


@pytest.fixture
async def server(settings: Settings) -> Any:
    async with arm.server(settings) as made:
        await arm.put(made, arm.SUBSCRIPTION, {})
        yield made


async def test_45_a_body_of_two_megabytes_and_one_byte(server: httpx.AsyncClient) -> None:
    fits = b'{"location": "local"' + b" " * (body.MOST_BYTES - 21) + b"}"
    assert len(fits) == body.MOST_BYTES

    async def chunked() -> Any:
        for at in range(0, len(fits) + 1, 65536):
            yield (fits + b" ")[at : at + 65536]

    inside = await server.put(arm.GROUP, params=VERSION, content=fits, headers=JSON)
    promised = await server.put(arm.GROUP, params=VERSION, content=fits + b" ", headers=JSON)
    streamed = await server.put(arm.GROUP, params=VERSION, content=chunked(), headers=JSON)

    assert inside.status_code == 201
    assert code(promised) == (413, "RequestContentTooLarge")
    assert code(streamed) == (413, "RequestContentTooLarge")
    assert str(body.MOST_BYTES) in promised.json()["error"]["message"]


async def test_46_deep_nesting_is_cheap(client: httpx.AsyncClient) -> None:
    deep = b'{"properties":' * 10_000 + b"1" + b"}" * 10_000
    await client.put(arm.GROUP, params=VERSION, content=b"{", headers=JSON)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()

    answer = await client.put(arm.GROUP, params=VERSION, content=deep, headers=JSON)

    assert code(answer) == (400, "InvalidRequestContent")
    assert time.perf_counter() - began < 0.25  # 50 ms on a quiet machine
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 20_000


async def test_47_a_gzip_bomb_is_not_unpacked(client: httpx.AsyncClient) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    headers = JSON | {"Content-Encoding": "gzip"}
    answer = await client.put(arm.GROUP, params=VERSION, content=bomb, headers=headers)

    assert code(answer) == (415, "UnsupportedMediaType")


NAMES = [
    ("a" * 64, 400),
    ("con", 400),
    ("-a", 400),
    ("A", 400),
    ("a%E2%80%AEb", 400),
    ("a%E2%80%8Bb", 400),
    ("%D0%B0bc", 400),
    ("%F0%9F%98%80", 400),
    ("a%20b", 400),
    ("%3Cscript%3E", 400),
]


async def test_48_names(client: httpx.AsyncClient) -> None:
    for name, status in NAMES:
        path = f"{arm.GROUP}/providers/Microsoft.Sql/servers/{name}"
        answer = await client.put(path, params=VERSION, json={"location": "local"})

        assert answer.status_code == status
        codes = {each["code"] for each in answer.json()["error"].get("details", [])}
        assert "InvalidResourceName" in codes | {arm.error(answer)}


async def test_48_names_that_are_none(server: httpx.AsyncClient) -> None:
    for name in ("", ".", "..", "%2e", "a%00", "a%0Ab", "%ff"):
        async with raw_http.connect(server) as line:
            path = f"{arm.SUBSCRIPTION}/resourceGroups/{name}/providers".encode()
            head = b" HTTP/1.1\r\nHost: localhost\r\n" + AUTHORIZATION
            await line.send(b"GET " + path + QUERY + head + b"\r\n")

            status, _, content = await line.answer()

            assert (status, content["error"]["code"]) == (400, "InvalidResourceId"), name


async def test_50_writes_are_throttled_per_caller(settings: Settings) -> None:
    settings = replace(arm.local(settings), throttle="on", throttle_writes=20, throttle_reads=1000)
    async with arm.application(settings) as app, arm.calling(app) as client:
        await arm.put(client, arm.SUBSCRIPTION, {})
        answers = await asyncio.gather(
            *(client.put(arm.SUBSCRIPTION, params=VERSION, json={}) for _ in range(40))
        )
        refused = [each for each in answers if each.status_code == 429]
        read = await client.get(arm.SUBSCRIPTION, params=VERSION)

    assert 10 <= len(refused) <= 25
    assert all(code(each) == (429, "TooManyRequests") for each in refused)
    assert all(int(each.headers["retry-after"]) >= 1 for each in refused)
    assert read.status_code == 200
    assert "x-ms-ratelimit-remaining-subscription-reads" in read.headers


SIZES = ["1000000000", "0", "-1", "1001", "a", "1.5"]


async def test_51_page_sizes(client: httpx.AsyncClient) -> None:
    for top in SIZES:
        path = f"{arm.SUBSCRIPTION}/resourceGroups"
        answer = await client.get(path, params=VERSION | {"$top": top})

        assert code(answer) == (400, "InvalidParameterValue")


async def test_52_filters_do_not_hang(client: httpx.AsyncClient) -> None:
    path = f"{arm.SUBSCRIPTION}/providers/Microsoft.Insights/eventtypes/management/values"
    for hostile in (
        "a" * 3000,
        " and " * 500,
        "status eq '" + "'" * 2000,
        "x eq " * 800,
        " " * 3000,
    ):
        began = time.perf_counter()
        answer = await client.get(path, params=VERSION | {"$filter": hostile})

        assert answer.status_code in {200, 400}
        assert time.perf_counter() - began < 2


async def test_headers_and_urls_are_limited(server: httpx.AsyncClient) -> None:
    long = await server.get("/" + "a" * 9000, params=VERSION)
    wide = await server.get("/livez", headers={"X-Wide": "a" * 17_000})

    assert code(long) == (414, "RequestUriTooLong")
    assert code(wide) == (431, "RequestHeaderFieldsTooLarge")


async def test_an_endless_head_is_cut(server: httpx.AsyncClient) -> None:
    async with raw_http.connect(server) as line:
        await line.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ")
        try:
            for _ in range(200):
                await line.send(b"a" * 65536)
                await asyncio.sleep(0)
        except ConnectionError:
            return
        assert await line.closed()


async def test_53_connections_of_one_address_are_bounded_and_others_are_served(
    settings: Settings,
) -> None:
    limited = replace(settings, connections_per_address=3, listen="127.0.0.1:0")
    async with arm.server(limited) as server, contextlib.AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(raw_http.connect(server)) for _ in range(3)]
        for line in lines:
            await line.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await line.answer())[0] == 200

        async with raw_http.connect(server) as refused:
            status, _, content = await refused.answer()
            assert (status, content["error"]["code"]) == (429, "TooManyConnections")
            assert await refused.closed()
        neighbour = await asyncio.open_connection(
            server.base_url.host, server.base_url.port, local_addr=("127.0.0.2", 0)
        )
        neighbour[1].write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await neighbour[0].readline()).split()[1] == b"200"
        neighbour[1].close()
        await lines.pop().close()
        again = await stack.enter_async_context(raw_http.connect(server))
        await again.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await again.answer())[0] == 200


@pytest.mark.parametrize(
    "unlimited", [{"connections_per_address": 0}, {"forwarded_from": ("127.0.0.0/8",)}]
)
async def test_connections_without_a_limit_and_of_a_proxy_are_not_counted(
    settings: Settings, unlimited: dict[str, Any]
) -> None:
    chosen = replace(settings, **({"connections_per_address": 2} | unlimited))
    async with arm.server(chosen) as server, contextlib.AsyncExitStack() as stack:
        for _ in range(5):
            line = await stack.enter_async_context(raw_http.connect(server))
            await line.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await line.answer())[0] == 200


async def test_53_slow_clients_are_cut_and_disturb_nobody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "HEAD_PATIENCE", 1.0)
    async with contextlib.AsyncExitStack() as stack:
        unlimited = replace(settings, connections_per_address=0)
        server = await stack.enter_async_context(arm.server(unlimited))
        lines = [await stack.enter_async_context(raw_http.connect(server)) for _ in range(1000)]
        for line in lines:
            await line.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ")
        took = []
        for _ in range(30):
            began = time.perf_counter()
            assert (await server.get("/livez")).status_code == 200
            took.append(time.perf_counter() - began)

        assert sorted(took)[-2] < 2
        assert all(await asyncio.gather(*(line.closed(within=10) for line in lines)))


async def test_a_body_that_never_ends_is_given_up(
    server: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "PATIENCE", 0.3)
    head = (
        b"PUT " + arm.GROUP.encode() + QUERY + b" HTTP/1.1\r\nHost: localhost\r\n" + AUTHORIZATION
    )
    async with raw_http.connect(server) as line:
        await line.send(head + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")

        status, _, content = await line.answer()

        assert (status, content["error"]["code"]) == (408, "RequestTimeout")
        assert await line.closed()


async def test_a_refused_body_is_not_waited_for(
    server: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "LINGER", 0.3)
    head = b"PUT " + arm.GROUP.encode() + QUERY + b" HTTP/1.1\r\nHost: localhost\r\n"
    async with raw_http.connect(server) as line:
        await line.send(head + b"Content-Length: 1000\r\n\r\n{")

        assert (await line.answer())[0] == 401
        assert await line.closed(within=3)


async def test_a_request_over_its_time_limit_is_504_and_leaves_nothing_half_done(
    settings: Settings, postgres: Any, database_url: str
) -> None:
    path = f"{arm.SUBSCRIPTION}/resourceGroups/late"
    limited = arm.local(replace(settings, request_limit=timedelta(milliseconds=300)))
    name = database_url.rpartition("/")[2]
    async with arm.plane(limited) as plane, arm.calling(arm.build(plane)) as client:
        await arm.put(client, arm.SUBSCRIPTION, {})
        other = await asyncpg.connect(postgres.url(name))
        async with other.transaction():
            # The resource is written before its audit event, which has to wait now.
            await other.execute("lock table audit_event in share row exclusive mode")

            answer = await client.put(path, params=VERSION, json={"location": "local"})

            assert code(answer) == (504, "RequestTimedOut")
            assert answer.headers["retry-after"] == "5"
        await other.close()

        assert (await client.get(path, params=VERSION)).status_code == 404
        query = "select count(*) from audit_event where resource_id like '%late'"
        assert await plane.db.fetchval(query) == 0
        assert (
            await client.put(path, params=VERSION, json={"location": "local"})
        ).status_code == 201


async def test_an_action_that_waits_for_an_engine_is_not_cut_by_the_limit(
    settings: Settings, targets: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_requests, "PATIENCE", 1.0)
    async with start_jobs_api(settings, targets, tmp_path) as jobs_api:
        await jobs_api.a_job()
        limited = replace(jobs_api.plane.settings, request_limit=timedelta(milliseconds=700))
        app = arm.build(replace(jobs_api.plane, settings=limited))
        async with arm.calling(app) as client:
            answer = await client.post(jobs_api.url("targetGroups/fleet/resolve"), params=VERSION)

        assert code(answer) == (503, "EngineNotAnswering")
