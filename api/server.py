"""uvicorn with the limits it lacks: a client can't hold a connection by sending slowly or without end."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import uvicorn
from litestar.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_PATIENCE = 10.0  # seconds in which the head of a request must have arrived
LARGEST_HEAD = 64 * 1024  # what is kept in memory of an unfinished head
LINGER = 2.0  # seconds for a refused body to drain, so that the refusal is read
KEEP_ALIVE = 75
DRAIN = 5


class Connections:
    """How many are open from each client address; those of a proxy that is believed are not counted."""

    def __init__(self, limit: int = 0, proxies: tuple[str, ...] = ()) -> None:
        self._limit = limit
        self._proxies = tuple(ipaddress.ip_network(each) for each in proxies)
        self._open: Counter[str] = Counter()

    def key(self, address: str) -> str | None:
        """What is counted: an IPv4 address, or the network that one IPv6 client has; None: nothing."""
        if not self._limit:
            return None
        try:
            client = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return None
        if any(client in network for network in self._proxies):
            return None
        if client.version == 6 and client.ipv4_mapped is None:
            return str(ipaddress.ip_network((client, 64), strict=False))
        return str(getattr(client, "ipv4_mapped", None) or client)

    def enter(self, key: str) -> bool:
        if self._open[key] >= self._limit:
            return False
        self._open[key] += 1
        return True

    def leave(self, key: str) -> None:
        self._open[key] -= 1
        if not self._open[key]:
            del self._open[key]


class GuardedProtocol(HttpToolsProtocol):
    """A limit per client address, a timer for the head of each request, one for what follows a refusal."""

    per_address = Connections()

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._in_head = True
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        self._counted: str | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        key = self.per_address.key(self.client[0]) if self.client else None
        if key is None or self.per_address.enter(key):
            self._counted = key
            self._arm(HEAD_PATIENCE)
        else:
            self._refuse(
                429, "TooManyConnections", "Too many connections are open from this address."
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        if self._counted is not None:
            self.per_address.leave(self._counted)
            self._counted = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.transport.is_closing():
            return
        if not self._in_head:
            return
        self._head_bytes += len(data)
        if self._head_bytes > LARGEST_HEAD:
            self._refuse(
                431, "RequestHeaderFieldsTooLarge", "The head of the request is too large."
            )
        elif self._timer is None:
            self._arm(HEAD_PATIENCE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._disarm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.cycle is not None and self.cycle.response_complete:
            self._arm(KEEP_ALIVE)  # the refused body has ended; the connection may serve again

    def on_response_complete(self) -> None:
        unread = self.cycle.more_body and not self.pipeline
        super().on_response_complete()
        if unread and not self.transport.is_closing():
            self._arm(LINGER)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """The parser's refusals in ARM's words."""
        self._refuse(400, "InvalidRequest", "The request is not valid HTTP/1.1.")

    def _refuse(self, status: int, code: str, message: str) -> None:
        request_id = str(uuid4())
        info = {"type": "RequestId", "info": {"requestId": request_id}}
        error = {"code": code, "message": message, "additionalInfo": [info]}
        body = msgspec.json.encode({"error": error})
        head = (
            f"HTTP/1.1 {status} Refused\r\n"
            f"content-type: application/json; charset=utf-8\r\n"
            f"content-length: {len(body)}\r\n"
            f"x-ms-request-id: {request_id}\r\n"
            f"x-content-type-options: nosniff\r\n"
            f"connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _arm(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._expired)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Signals are the composition root's business; `up` is set when requests are answered."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make(
    app: ASGIApp, context: ssl.SSLContext | None, connections: Connections | None = None
) -> Server:
    chosen = {"per_address": connections or Connections()}
    config = uvicorn.Config(
        app,
        http=type("Protocol", (GuardedProtocol,), chosen),
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=DRAIN,
        ssl_context_factory=None if context is None else lambda _config, _default: context,
    )
    return Server(config)


class Certificate:
    """The listener's TLS context; a changed certificate is used from the next handshake on."""

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._seen = self._stamp()
        self.context.load_cert_chain(chain, key)

    def reload(self) -> bool:
        """Whether there was a new one. A broken pair of files leaves the old one in use."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trial.load_cert_chain(self._chain, self._key)
        self.context.load_cert_chain(self._chain, self._key)
        self._seen = stamp
        return True

    def _stamp(self) -> tuple[int, ...]:
        return tuple(
            part
            for path in (self._chain, self._key)
            for part in (path.stat().st_mtime_ns, path.stat().st_ino)
        )
