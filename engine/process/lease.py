"""Leases: how long a process may act without an acknowledgement, by its own clock."""

import asyncio
from datetime import timedelta

import httpx

from muster.core.clock import Clock

NOT_ACKNOWLEDGED = frozenset({408, 429})  # status codes of requests that had no effect


class Lease:
    """Begins when the last acknowledged request was sent; the other side counts from its arrival, which is later."""

    def __init__(self, name: str, patience: timedelta, clock: Clock) -> None:
        self.name = name
        self.patience = patience
        self.expired = asyncio.Event()
        self._clock = clock
        self._renewed_at = clock.monotonic()

    def renew(self, sent: float) -> None:
        """An expired lease stays expired: other processes may have acted on that."""
        self._renewed_at = max(self._renewed_at, sent)

    async def run(self) -> None:
        """Returns when the lease has expired, also if this process was suspended meanwhile."""
        while (left := self._left()) > 0:
            await self._clock.sleep(timedelta(seconds=left))
        self.expired.set()

    def _left(self) -> float:
        return self._renewed_at + self.patience.total_seconds() - self._clock.monotonic()


class LeaseRenewingTransport(httpx.AsyncHTTPTransport):
    """Renews a lease with every response of the Workload API."""

    def __init__(self, lease: Lease, clock: Clock) -> None:
        super().__init__(trust_env=False)
        self._lease = lease
        self._clock = clock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        sent = self._clock.monotonic()
        response = await super().handle_async_request(request)
        if not response.is_server_error and response.status_code not in NOT_ACKNOWLEDGED:
            self._lease.renew(sent)
        return response
