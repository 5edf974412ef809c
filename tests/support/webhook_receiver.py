"""An HTTP server on loopback that receives webhooks, and answers as a test wants.

async with receiving() as receiver:
    receiver.url                         for the webhook
    receiver.answers = [500, 200]        the next answers; after them `receiver.answer` (200)
    receiver.requests                    all that came: headers, body
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from muster.core import sealing
from muster.core.settings import Secret
from tests.support.engine_fixture import PRIVATE_KEY
from tests.support.fleet import Fleet

SECRET = "a secret of at least 16 characters"
HANGS = 0  # instead of a status


@dataclass
class Received:
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def event_id(self) -> str:
        return self.headers["muster-event-id"]


@dataclass
class Receiver:
    url: str = ""
    answer: int = 200
    answers: list[int] = field(default_factory=list)
    location: str = ""  # of redirects
    requests: list[Received] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                pairs = (line.split(": ", 1) for line in head[1:] if line)
                headers = {name.lower(): value for name, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Received(headers, body))
                self.arrived.set()
                status = self.answers.pop(0) if self.answers else self.answer
                if status == HANGS:
                    await asyncio.sleep(3600)
                more = f"Location: {self.location}\r\n" if self.location else ""
                writer.write(f"HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\n\r\n".encode())
                await writer.drain()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def kinds(self) -> list[str]:
        return [request.document["kind"] for request in self.requests]


@contextlib.asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(receiver.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def add_webhook(fleet: Fleet, name: str, url: str, **document: Any) -> None:
    """As the node agent does it, with a secret that the fleet's engine can open."""
    key = X25519PrivateKey.from_private_bytes(base64.b64decode(PRIVATE_KEY)).public_key()
    public_key = base64.b64encode(key.public_bytes_raw()).decode()
    context = sealing.belongs_to_webhook(fleet.account.uid, fleet.account.identity, name)
    sealed = sealing.seal(public_key, Secret(SECRET), context)
    document = {"url": url, "events": ["failed", "succeeded"], "secret": sealed} | document
    await fleet.root.fetchval(
        "select jobs_internal.put_webhook($1, $2, '{}')", name, json.dumps(document)
    )


async def deliveries(fleet: Fleet, name: str) -> list[dict[str, Any]]:
    text = await fleet.root.fetchval(
        "select jobs_internal.list_deliveries($1, null, 1000, '{}')::text", name
    )
    return [item["properties"] for item in json.loads(text)["items"]]


async def published(fleet: Fleet) -> bool:
    """Every event has its number, and every delivery its row."""
    return not await fleet.root.fetchval("select exists (select from jobs_internal.outbox)")


async def settled(fleet: Fleet) -> bool:
    """No delivery is due or waits for another attempt, either."""
    pending = "select exists (select from jobs_internal.webhook_delivery where status = 'Pending')"
    return await published(fleet) and not await fleet.root.fetchval(pending)
