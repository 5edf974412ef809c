"""Token buckets per principal, subscription and class of request, as Azure has them."""

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import redis.asyncio
import redis.exceptions

from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.errors import Throttled
from muster.core.settings import Settings

log = telemetry.get(__name__)

MOST_BUCKETS = 100_000
PAUSE = 5.0  # seconds without Redis before it is tried again

# One script so that two processes never spend the same token. The server's clock counts.
TAKE = """
local now = redis.call('TIME')
now = now[1] + now[2] / 1000000
local size, rate = tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('HMGET', KEYS[1], 'left', 'at')
local left, at = tonumber(kept[1] or size), tonumber(kept[2] or now)
left = math.min(size, left + math.max(0, now - at) * rate)
local granted = 0
if left >= 1 then left = left - 1 granted = 1 end
redis.call('HSET', KEYS[1], 'left', tostring(left), 'at', tostring(now))
redis.call('EXPIRE', KEYS[1], math.ceil(size / rate) + 1)
return {granted, tostring(left)}
"""


@dataclass(frozen=True)
class Rate:
    size: float
    per_second: float
    header: bytes


@dataclass(slots=True)
class Bucket:
    left: float
    at: float


Take = Callable[[str, Rate], Awaitable[tuple[bool, float]]]


class Throttle:
    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.on = settings.throttle == "on" or (
            settings.throttle == "auto" and settings.oidc_issuer is not None
        )
        prefix = b"x-ms-ratelimit-remaining-subscription-"
        reads = Rate(settings.throttle_reads, settings.throttle_reads / 10, prefix + b"reads")
        writes = Rate(settings.throttle_writes, settings.throttle_writes / 20, prefix + b"writes")
        deletes = Rate(
            settings.throttle_deletes, settings.throttle_deletes / 20, prefix + b"deletes"
        )
        self._rates = {"GET": reads, "HEAD": reads, "DELETE": deletes}
        self._writes = writes
        self._memory = MemoryBuckets(clock)
        self._shared = SharedBuckets(settings, clock) if self.on and settings.redis_url else None

    async def spend(self, method: str, who: str, subscription: str | None) -> tuple[bytes, bytes]:
        """One token, and the header that says what is left; Throttled when there is none."""
        rate = self._rates.get(method, self._writes)
        name = rate.header.rpartition(b"-")[2].decode()
        key = f"{who}/{(subscription or 'tenant').lower()}/{name}"
        answer = await self._shared.take(key, rate) if self._shared else None
        granted, left = answer or self._memory.take(key, rate)
        if not granted:
            raise Throttled(
                f"Too many {name} on this subscription by this caller; they are counted in buckets "
                f"of {rate.size:g} that refill by {rate.per_second:g} per second.",
                retry_after=max(1, math.ceil((1 - left) / rate.per_second)),
            )
        return rate.header, str(int(left)).encode()

    async def close(self) -> None:
        if self._shared:
            await self._shared.close()


class MemoryBuckets:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, key: str, rate: Rate) -> tuple[bool, float]:
        now = self._clock.monotonic()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(rate.size, now)
            if len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        bucket.left = min(rate.size, bucket.left + max(0.0, now - bucket.at) * rate.per_second)
        bucket.at = now
        if bucket.left < 1:
            return False, bucket.left
        bucket.left -= 1
        return True, bucket.left


class SharedBuckets:
    """In Redis; None while it is away, so that the caller counts for itself."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        assert settings.redis_url
        self._clock = clock
        self._redis = redis.asyncio.from_url(
            settings.redis_url.reveal(), socket_timeout=0.25, socket_connect_timeout=0.25
        )
        self._take = self._redis.register_script(TAKE)
        self._away_until = 0.0

    async def take(self, key: str, rate: Rate) -> tuple[bool, float] | None:
        if self._clock.monotonic() < self._away_until:
            return None
        try:
            granted, left = await self._take(
                keys=[f"muster:throttle:{key}"], args=[rate.size, rate.per_second]
            )
        except (redis.exceptions.RedisError, OSError, TimeoutError) as error:
            log.warning("redis is unavailable; this process counts alone", why=type(error).__name__)
            self._away_until = self._clock.monotonic() + PAUSE
            return None
        return bool(granted), float(left)

    async def close(self) -> None:
        await self._redis.aclose()
