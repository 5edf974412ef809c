"""How long we may act without having been heard, by our own clock."""

import asyncio
from datetime import timedelta

import httpx

from muster.core.clock import Clock

AGAIN = frozenset({408, 429})  # an answer, but not to what was said


class Lease:
    """Counted from when the last acknowledged word was sent: others count from when it came."""

    def __init__(self, name: str, patience: timedelta, clock: Clock) -> None:
        self.name = name
        self.patience = patience
        self.expired = asyncio.Event()
        self._clock = clock
        self._heard = clock.monotonic()

    def renew(self, sent: float) -> None:
        """One that has expired stays so: others may have acted on it."""
        self._heard = max(self._heard, sent)

    async def run(self) -> None:
        """Until it has expired; also when this process was stopped and goes on much later."""
        while (left := self._left()) > 0:
            await self._clock.sleep(timedelta(seconds=left))
        self.expired.set()

    def _left(self) -> float:
        return self._heard + self.patience.total_seconds() - self._clock.monotonic()


class LeaseRenewingTransport(httpx.AsyncHTTPTransport):
    """Renews a lease with every answer of the Workload API."""

    def __init__(self, lease: Lease, clock: Clock) -> None:
        super().__init__(trust_env=False)
        self._lease = lease
        self._clock = clock

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        sent = self._clock.monotonic()
        answer = await super().handle_async_request(request)
        if not answer.is_server_error and answer.status_code not in AGAIN:
            self._lease.renew(sent)
        return answer
