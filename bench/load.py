"""A closed loop of keep-alive HTTP connections, light enough that the server stays the bottleneck."""

import asyncio
import time
from collections.abc import Callable


async def measure(
    host: str, port: int, request: Callable[[int], bytes], *, connections: int, seconds: float
) -> float:
    """Responses per second; any response that is not 2xx ends the benchmark."""
    deadline = time.monotonic() + seconds
    counts = await asyncio.gather(
        *(_drive(host, port, request, n, deadline) for n in range(connections))
    )
    return sum(counts) / seconds


async def _drive(
    host: str, port: int, request: Callable[[int], bytes], number: int, deadline: float
) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    done = 0
    try:
        while time.monotonic() < deadline:
            writer.write(request(number * 1_000_000 + done))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 2"):
                raise SystemExit(f"unexpected response: {head[:200]!r} {await reader.read(400)!r}")
            lower = head.lower()
            at = lower.index(b"content-length:") + 15
            await reader.readexactly(int(lower[at : lower.index(b"\r", at)]))
            done += 1
    finally:
        writer.close()
    return done
