"""A server that answers as Vault's key-value store of version 2 does, and counts who asked."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

TOKEN = "hvs.canary"
METADATA = {
    "created_time": "2018-03-22T02:24:06.945319214Z", "custom_metadata": None, "deletion_time": "",
    "destroyed": False, "version": 2,
}  # fmt: skip


@dataclass
class FakeVault:
    secrets: dict[str, Any] = field(default_factory=dict)  # what is at mount/path; None = deleted
    status: int | None = None  # of every answer, whatever is asked
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    namespaces: list[str | None] = field(default_factory=list)
    address: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {
                name.lower(): value
                for name, _, value in (line.partition(": ") for line in head[1:])
            }
            if self.silent:
                await reader.read()
            status, body = self._answer(head[0].split(" ")[1], headers)
            text = json.dumps(body).encode()
            moved = "Location: http://127.0.0.1:1/\r\n" if 300 <= status < 400 else ""
            start = f"HTTP/1.1 {status} X\r\nContent-Length: {len(text)}\r\n{moved}\r\n"
            writer.write(start.encode() + text)
            await writer.drain()
        writer.close()

    def _answer(self, path: str, headers: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        self.namespaces.append(headers.get("x-vault-namespace"))
        if self.status is not None:
            return self.status, {"errors": ["no"]}
        if headers.get("x-vault-token") != TOKEN:
            return 403, {"errors": ["permission denied"]}
        mount, _, rest = path.removeprefix("/v1/").partition("/data/")
        name = f"{mount}/{rest}"
        if name not in self.secrets:
            return 404, {"errors": []}
        found = self.secrets[name]
        answer = {"request_id": "r", "data": {"data": found, "metadata": METADATA}}
        return (404 if found is None else 200), answer


@contextlib.asynccontextmanager
async def a_vault(**secrets: Any) -> AsyncIterator[FakeVault]:
    vault = FakeVault({name.replace("__", "/"): value for name, value in secrets.items()})
    server = await asyncio.start_server(vault.serve, "127.0.0.1", 0)
    vault.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield vault
    finally:
        server.close()
        await server.wait_closed()
