"""What clients see on the wire: statuses, headers, long-running operations, pages, TLS."""

import asyncio
import contextlib
import re
import ssl
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme

from muster.core.settings import Settings
from tests.support import principals
from tests.support import arm
from tests.support import raw_http

VERSION = {"api-version": arm.SQL}
FAIL = """
update operation set status = 'Failed', ended_at = clock_timestamp(),
       error = '{"code": "TargetUnreachable", "message": "It did not answer."}'
 where ended_at is null
"""


@pytest.fixture
async def api(settings: Settings) -> Any:
    async with principals.start_api(settings) as made:
        yield made


async def test_a_long_put_is_followed_to_its_end(api: principals.PrincipalsApi) -> None:
    path = f"{arm.SERVER}/databases/New One"
    call = api.owner
    made = await call.put(path, params=VERSION, json={"location": "local"})

    assert made.status_code == 201
    assert made.json()["properties"]["provisioningState"] == "Creating"
    assert made.json()["name"] == "New One"
    assert int(made.headers["retry-after"]) >= 1
    status, result = made.headers["azure-asyncoperation"], made.headers["location"]
    place = rf"http://{arm.HOST}/subscriptions/s1/providers/Microsoft\.Sql/locations/local/"
    assert re.fullmatch(
        place + r"databaseAzureAsyncOperation/[0-9a-f-]{36}\?api-version=2025-01-01", status
    )
    assert re.fullmatch(
        place + r"databaseOperationResults/[0-9a-f-]{36}\?api-version=2025-01-01", result
    )
    running = await call.get(status)
    assert (running.status_code, running.json()["status"]) == (200, "InProgress")
    assert int(running.headers["retry-after"]) >= 1
    waiting = await call.get(result)
    assert (waiting.status_code, waiting.content) == (202, b"")
    assert waiting.headers["location"] == result
    assert int(waiting.headers["retry-after"]) >= 1

    await api.settle()

    done = await call.get(status)
    assert done.json()["status"] == "Succeeded"
    assert done.json()["endTime"]
    assert done.json()["name"] in status
    assert "retry-after" not in done.headers
    shown = await call.get(result)
    assert (shown.status_code, shown.json()["id"]) == (200, path)
    again = await call.put(path, params=VERSION, json={"location": "local"})
    assert again.status_code == 200
    assert "azure-asyncoperation" not in again.headers


async def test_a_failed_operation_says_so_in_both_places(api: principals.PrincipalsApi) -> None:
    answer = await api.owner.patch(arm.SERVER, params=VERSION, json={"tags": {"x": "y"}})
    assert (answer.status_code, answer.content) == (202, b"")
    await api.plane.db.execute(FAIL)

    status = await api.owner.get(answer.headers["azure-asyncoperation"])
    result = await api.owner.get(answer.headers["location"])

    assert status.status_code == 200
    assert status.json()["status"] == "Failed"
    assert status.json()["error"]["code"] == "TargetUnreachable"
    assert (result.status_code, arm.error(result)) == (409, "TargetUnreachable")


async def test_deletes(api: principals.PrincipalsApi) -> None:
    call = api.owner
    absent = await call.delete(f"{arm.SERVER}/databases/absent", params=VERSION)
    pool = await call.delete(f"{arm.SERVER}/elasticPools/p1", params=VERSION)
    first = await call.delete(arm.SERVER, params=VERSION)
    second = await call.delete(arm.SERVER, params=VERSION)

    assert (absent.status_code, absent.content) == (204, b"")
    assert pool.status_code == 200
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.headers["location"] == second.headers["location"]
    await api.settle()
    assert (await call.get(first.headers["location"])).status_code == 204
    group = await call.delete(f"{arm.SUBSCRIPTION}/resourceGroups/absent", params=VERSION)
    assert (group.status_code, arm.error(group)) == (404, "ResourceGroupNotFound")


async def test_pages_are_followed_to_the_end(api: principals.PrincipalsApi) -> None:
    call = api.owner
    names = [f"p{n:02}" for n in range(7)]
    for name in names[2:]:
        await arm.put(call, f"{arm.SERVER}/elasticPools/{name}", {})
    await arm.put(call, f"{arm.SERVER}/elasticPools/p00", {})
    seen: list[str] = []
    url: str | None = f"{arm.SERVER.upper()}/ELASTICPOOLS?api-version=2025-01-01&%24top=3"
    while url:
        page = (await call.get(url)).json()
        assert len(page["value"]) <= 3
        seen += [each["name"] for each in page["value"]]
        url = page.get("nextLink")
        assert url is None or url.startswith(f"http://{arm.HOST}/SUBSCRIPTIONS/S1")

    assert seen == ["p00", *names[2:], "p1"]


async def test_every_answer_has_its_ids(api: principals.PrincipalsApi) -> None:
    headers = {
        "x-ms-correlation-request-id": "11111111-2222-3333-4444-555555555555",
        "x-ms-client-request-id": "mine",
    }
    for path in (arm.SERVER, "/nothing", "/livez"):
        answer = await api.owner.get(path, params=VERSION, headers=headers)

        assert re.fullmatch(r"[0-9a-f-]{36}", answer.headers["x-ms-request-id"])
        assert (
            answer.headers["x-ms-correlation-request-id"] == headers["x-ms-correlation-request-id"]
        )
        assert "x-ms-routing-request-id" in answer.headers
        assert "x-ms-client-request-id" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
    asked = await api.owner.get(
        arm.SERVER, params=VERSION, headers=headers | {"x-ms-return-client-request-id": "true"}
    )
    assert asked.headers["x-ms-client-request-id"] == "mine"


async def test_names_keep_the_case_that_was_given_last(api: principals.PrincipalsApi) -> None:
    upper = arm.GROUP.replace("g1", "G1")
    answer = await arm.put(api.owner, upper, {"location": "local"})

    assert answer.status_code == 200
    assert answer.json()["name"] in {"g1", "G1"}
    assert (await api.owner.head(arm.GROUP, params=VERSION)).status_code == 204


async def test_the_availability_of_a_name(api: principals.PrincipalsApi) -> None:
    path = f"{arm.SUBSCRIPTION}/providers/Microsoft.Sql/checkNameAvailability"
    body = {"name": "free", "type": "Microsoft.Sql/servers"}
    answer = await api.owner.post(path, params=VERSION, json=body)

    assert answer.json() == {"name": "free", "available": True}
    taken = await api.owner.post(path, params=VERSION, json=body | {"name": "eu1"})
    assert (taken.json()["available"], taken.json()["reason"]) == (False, "AlreadyExists")


def certificate(folder: Path, authority: trustme.CA) -> tuple[Path, Path]:
    made = authority.issue_cert("127.0.0.1")
    chain, key = folder / "cert.pem", folder / "key.pem"
    made.private_key_pem.write_to_path(key)
    chain.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    return chain, key


async def serial(url: httpx.URL, authority: trustme.CA) -> int:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    _, writer = await asyncio.open_connection(url.host, url.port, ssl=context)
    found = writer.get_extra_info("peercert")["serialNumber"]
    writer.close()
    await writer.wait_closed()
    return int(found, 16)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_tls_is_spoken_and_a_new_certificate_is_taken_up(
    settings: Settings, tmp_path: Path
) -> None:
    authority = trustme.CA()
    chain, key = certificate(tmp_path, authority)
    settings = replace(settings, tls_cert=chain, tls_key=key, sweep=timedelta(milliseconds=50))
    async with arm.server(settings) as client:
        url = client.base_url
        assert url.scheme == "https"
        first = await serial(url, authority)
        context = ssl.create_default_context()
        authority.configure_trust(context)
        async with httpx.AsyncClient(base_url=url, verify=context) as secure:
            answer = await secure.get("/livez")
            assert answer.headers["strict-transport-security"]

        chain.write_bytes(b"broken")
        await asyncio.sleep(0.2)
        assert await serial(url, authority) == first
        certificate(tmp_path, authority)
        async with asyncio.timeout(5):
            while await serial(url, authority) == first:
                await asyncio.sleep(0.05)

        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        authority.configure_trust(old)
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = ssl.TLSVersion.TLSv1_1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection(url.host, url.port, ssl=old)


async def test_stopping_lets_a_request_finish(settings: Settings) -> None:
    head = (
        f"PUT {arm.SUBSCRIPTION}?api-version={arm.SQL} HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {arm.TOKEN}\r\nContent-Type: application/json\r\n"
        "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    )
    async with contextlib.AsyncExitStack() as server:
        client = await server.enter_async_context(arm.server(settings))
        async with raw_http.connect(client) as line:
            await line.send(head.encode())
            assert (await line.answer())[0] == 100  # it is being answered now

            stopping = asyncio.create_task(server.aclose())
            await asyncio.sleep(0.2)
            await line.send(b"{}")

            assert (await line.answer())[0] == 201
            await stopping
