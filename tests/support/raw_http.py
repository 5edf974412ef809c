"""HTTP by hand over a socket: for requests that no client would send."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx


class Raw:
    """One connection; `answer` reads one response, `closed` waits for the end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, within: float = 5) -> tuple[int, dict[str, str], Any]:
        async with asyncio.timeout(within):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            lines = head.split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines[1:] if line)
            }
            body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0].split()[1]), headers, json.loads(body) if body else None

    async def closed(self, within: float = 5) -> bool:
        try:
            async with asyncio.timeout(within):
                while await self._reader.read(65536):
                    pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        return True

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


@contextlib.asynccontextmanager
async def connect(client: httpx.AsyncClient) -> AsyncIterator[Raw]:
    url = client.base_url
    line = Raw(*await asyncio.open_connection(url.host, url.port))
    try:
        yield line
    finally:
        await line.close()
