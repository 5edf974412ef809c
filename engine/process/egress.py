"""The addresses that the control plane decides on, as it last named them to this process.

Each heartbeat brings the current ones, so what was deleted is closed by then. Before anything is refused the
control plane is asked: an embedded server that was made since the last heartbeat is reached at once.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from muster.core.egress import Addresses

Ask = Callable[[], Awaitable[Addresses]]


class Egress:
    def __init__(self, addresses: Addresses, ask: Ask | None = None) -> None:
        self.ask = ask  # None: there is no control plane to ask
        self._addresses = addresses
        self._asked = 0.0  # when the last answered question was sent
        self._asking = asyncio.Lock()

    def replace(self, addresses: Addresses) -> None:
        self._addresses = addresses

    async def current(self) -> Addresses:
        return self._addresses

    async def newest(self) -> Addresses:
        """Of those who want it at the same time, one asks."""
        if self.ask is None:
            return self._addresses
        wanted = time.monotonic()
        async with self._asking:
            if self._asked < wanted:
                sent = time.monotonic()
                self.replace(await self.ask())
                self._asked = sent
            return self._addresses
