"""Webhooks: which URLs are usable, what is signed, when it is tried again, and one bounded request."""

import asyncio
import contextlib
import hashlib
import hmac

import pytest

from muster.core.address_source import NONE
from muster.core.connect import Connector
from muster.core.settings import Secret, Settings
from muster.core.webhook import Receiver, next_pause, receiver, request, sign, webhook_settings
from muster.core.webhook_client import DeliveryError, WebhookClient, refusal

SETTINGS = Settings(database_url=Secret("x"), target_allow=("127.0.0.0/8",))
HEADERS = {"Muster-Event-Id": "e"}


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://a.example/x?y=1", Receiver(True, "a.example", 443, "/x?y=1")),
        ("HTTP://A.example:8080", Receiver(False, "a.example", 8080, "/")),
        ("https://[2001:db8::1]:9443/", Receiver(True, "2001:db8::1", 9443, "/")),
    ],
)
def test_a_url_has_host_port_and_path(url, parts):
    assert receiver(url) == parts


@pytest.mark.parametrize(
    "url",
    [
        "", "a.example", "ftp://a.example", "https://", "https://u:p@a.example", "https://a.example/#x",
        "https://a.example/a b", "https://a.example/\r\nX: y", "https://a.example:99999", "https://a.example:0",
        "https://ä.example", "https://a.example/" + "x" * 2000,
    ],
)  # fmt: skip
def test_a_url_that_can_not_be_used_is_none(url):
    assert receiver(url) is None


def test_time_and_body_are_signed():
    expected = hmac.new(b"key", b'17.{"a":1}', hashlib.sha256).hexdigest()

    assert sign(Secret("key"), 17, b'{"a":1}') == f"v1={expected}"


def test_pauses_grow_up_to_an_hour_and_end():
    assert [next_pause(n, 8) for n in range(1, 9)] == [10, 30, 90, 270, 810, 2430, 3600, None]
    assert next_pause(1, 1) is None


def test_only_2xx_is_an_acceptance():
    assert refusal(200) is None and refusal(204) is None
    assert "redirects are not followed" in refusal(302)
    assert refusal(500) == "the receiver answered 500"


def test_https_is_open_beside_the_ports_of_targets():
    assert webhook_settings(SETTINGS).target_ports == ("1024-65535", "443")


@contextlib.asynccontextmanager
async def answering(answer: bytes, *, ends: bool = True, seen: list[bytes] | None = None):
    """A receiver that sends these bytes, and then hangs up unless `ends` is false."""
    writers = []

    async def serve(reader, writer):
        writers.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        if seen is not None:
            seen.append(head)
        with contextlib.suppress(OSError):
            writer.write(answer)
            await writer.drain()
            if ends:
                writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Receiver(False, "127.0.0.1", server.sockets[0].getsockname()[1], "/hook")
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def client(settings=SETTINGS, timeout=5.0):
    return WebhookClient(Connector(webhook_settings(settings), NONE), timeout=timeout)


async def test_one_request_gets_one_status():
    seen = []
    async with answering(b"HTTP/1.1 202 Accepted\r\n\r\nthanks", seen=seen) as to:
        assert await client().post(to, HEADERS, b"{}") == 202

    (head,) = seen
    assert head == request(to, HEADERS, b"{}").removesuffix(b"{}")
    assert head.startswith(b"POST /hook HTTP/1.1\r\nHost: 127.0.0.1:")


async def test_interim_answers_are_passed_over():
    async with answering(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n") as to:
        assert await client().post(to, HEADERS, b"{}") == 204


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-x\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000, "does not answer"),
        (b"", "does not answer"),
    ],
    ids=["another protocol", "endless headers", "nothing"],
)
async def test_what_is_no_answer_is_an_error(answer, why):
    async with answering(answer) as to:
        with pytest.raises(DeliveryError, match=why):
            await client().post(to, HEADERS, b"{}")


async def test_an_endless_body_is_not_read_to_its_end():
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1_000_000) as to:
        assert await client().post(to, HEADERS, b"{}") == 200


async def test_the_status_counts_when_the_body_does_not_end(monkeypatch):
    monkeypatch.setattr("muster.core.webhook_client.BODY_TIMEOUT", 0.05)
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n", ends=False) as to:
        assert await client().post(to, HEADERS, b"{}") == 200


async def test_a_receiver_that_hangs_is_given_up():
    async with answering(b"", ends=False) as to:
        with pytest.raises(DeliveryError, match="no answer within 0.05 s"):
            await client(timeout=0.05).post(to, HEADERS, b"{}")


async def test_the_rules_for_targets_hold():
    closed = Settings(database_url=Secret("x"))
    async with answering(b"HTTP/1.1 200 OK\r\n\r\n") as to:
        with pytest.raises(DeliveryError, match="loopback"):
            await client(closed).post(to, HEADERS, b"{}")
