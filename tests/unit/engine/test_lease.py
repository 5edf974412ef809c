from datetime import timedelta

import httpx

from engine.process.lease import LeaseRenewingTransport, Lease
from tests.support.fake_clock import FakeClock


async def test_a_lease_expires_when_its_patience_has_passed_since_the_last_send_that_was_heard():
    clock = FakeClock()
    lease = Lease("api", timedelta(seconds=30), clock)
    clock.advance(timedelta(seconds=20))
    lease.renew(sent=18.0)
    lease.renew(sent=12.0)

    await lease.run()

    assert lease.expired.is_set() and clock.monotonic() == 48.0


async def test_only_a_real_answer_renews_it(monkeypatch):
    clock = FakeClock()
    heard = []
    for status in (204, 410, 500, 503, 429):
        lease = Lease("api", timedelta(seconds=30), clock)
        monkeypatch.setattr(lease, "renew", lambda sent, status=status: heard.append(status))

        async def answer(self, request, status=status):
            return httpx.Response(status)

        monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", answer)
        async with LeaseRenewingTransport(lease, clock) as transport:
            await transport.handle_async_request(httpx.Request("PUT", "http://api.test"))

    assert heard == [204, 410]
