"""The addresses that the control plane allows, as it last sent them to this process.

Each heartbeat brings the current addresses, so a deleted address is closed by the next heartbeat. Before an address is
refused, the control plane is asked: a new embedded server can be reached at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import msgspec

from muster.core.address_source import Source
from muster.core.egress import Addresses

FetchAddresses = Callable[[], Awaitable[Addresses]]


class Egress:
    def __init__(self, addresses: Addresses, ask: FetchAddresses | None = None) -> None:
        self.ask = ask  # None: there is no control plane to ask
        self._addresses = addresses
        self._fetched_at = 0.0  # when the last successful request was sent
        self._lock = asyncio.Lock()

    def replace(self, addresses: Addresses) -> None:
        self._addresses = addresses

    async def current(self) -> Addresses:
        return self._addresses

    async def newest(self) -> Addresses:
        """Concurrent callers share one request."""
        if self.ask is None:
            return self._addresses
        called_at = time.monotonic()
        async with self._lock:
            if self._fetched_at < called_at:
                sent = time.monotonic()
                self.replace(await self.ask())
                self._fetched_at = sent
            return self._addresses


class WithoutEmbedded:
    """The same addresses for webhooks: embedded servers are no receivers."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def current(self) -> Addresses:
        return msgspec.structs.replace(await self._source.current(), embedded=frozenset())

    async def newest(self) -> Addresses:
        return msgspec.structs.replace(await self._source.newest(), embedded=frozenset())
