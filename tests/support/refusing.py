"""A server that has no session for anybody, and says so.

async with refusing("57P03", "the database system is starting up") as port: ...
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def refusing(sqlstate: str, said: str) -> AsyncIterator[int]:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        text = f"SFATAL\0VFATAL\0C{sqlstate}\0M{said}\0DAnd more.\0\0".encode()
        writer.write(b"E" + struct.pack("!i", 4 + len(text)) + text)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
