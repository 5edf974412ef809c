"""Wake-ups between processes: a hint that may be lost at any time, never a fact.

A process that waits for an event also polls; losing every wake-up costs latency only. PostgreSQL's
NOTIFY always carries them, Redis as well when there is one.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta

import asyncpg
import redis.asyncio
import redis.exceptions

from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.db import AWAY, SERVER_SETTINGS, Connection, Database
from muster.core.errors import Unavailable
from muster.core.settings import Settings
from muster.core.sql import Queries

Q = Queries("muster.core", "wake.sql")
log = telemetry.get(__name__)

Carrier = Callable[[asyncio.Event], Awaitable[None]]

PREFIX = "muster_"
PATTERN = "muster:*"
REDIS_AWAY = (redis.exceptions.RedisError, OSError, TimeoutError)
FIRST_PAUSE = timedelta(milliseconds=100)
LONGEST_PAUSE = timedelta(seconds=5)


async def notify_in(tx: Connection, channel: str) -> None:
    """For use in a transaction: listeners hear it when it commits, and never if it does not."""
    await tx.execute(Q.wake, channel)


class Wake:
    def __init__(self, settings: Settings, db: Database, clock: Clock | None = None) -> None:
        self._settings = settings
        self._db = db
        self._clock = clock or Clock()
        self._events: dict[str, list[asyncio.Event]] = defaultdict(list)
        self._changed = asyncio.Event()  # a new channel is listened to
        self._outbox: set[str] = set()
        self._posted = asyncio.Event()

    def event(self, channel: str) -> asyncio.Event:
        """Set at every wake-up; the waiter clears it before it reads the database."""
        event = asyncio.Event()
        self._events[channel].append(event)
        self._changed.set()
        return event

    async def notify(self, channel: str) -> None:
        """Outside a transaction. Never fails and never waits for Redis."""
        self._wake(channel)
        self._outbox.add(channel)
        self._posted.set()
        with contextlib.suppress(Unavailable):
            await self._db.execute(Q.wake, channel)

    async def run(self, stop: asyncio.Event) -> None:
        """Carries wake-ups until `stop`; connects again after every error."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep(self._listen, stop, "postgresql"))
            if self._settings.redis_url:
                group.create_task(self._keep(self._hear_redis, stop, "redis"))
                group.create_task(self._keep(self._tell_redis, stop, "redis"))

    async def _keep(self, carry: Carrier, stop: asyncio.Event, through: str) -> None:
        pause = FIRST_PAUSE
        while not stop.is_set():
            started = self._clock.monotonic()
            try:
                await carry(stop)
            except (*AWAY, *REDIS_AWAY) as error:
                log.warning("wake-ups interrupted", through=through, why=type(error).__name__)
            if self._clock.monotonic() - started > LONGEST_PAUSE.total_seconds():
                pause = FIRST_PAUSE
            await self._clock.sleep_or(stop, pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _listen(self, stop: asyncio.Event) -> None:
        connection = await asyncpg.connect(
            self._settings.database_url.reveal(),
            timeout=10,
            server_settings=SERVER_SETTINGS | {"application_name": "muster-wake"},
        )
        gone = asyncio.Event()

        def lost(_connection: object) -> None:
            gone.set()
            self._changed.set()

        connection.add_termination_listener(lost)
        listening: set[str] = set()
        try:
            while not stop.is_set() and not gone.is_set():
                self._changed.clear()
                for channel in self._events.keys() - listening:
                    await connection.add_listener(PREFIX + channel, self._on_notify)
                    listening.add(channel)
                    self._wake(channel)  # notifications before LISTEN are lost: look first
                await self._either(stop, self._changed)
                if not gone.is_set():
                    await connection.execute(Q.alive, timeout=5)
        finally:
            connection.terminate()

    async def _hear_redis(self, stop: asyncio.Event) -> None:
        client = self._redis()
        try:
            async with client.pubsub() as subscription:
                await subscription.psubscribe(PATTERN)
                self._wake_all()
                while not stop.is_set():
                    message = await subscription.get_message(
                        ignore_subscribe_messages=True, timeout=0.5
                    )
                    if message:
                        self._wake(message["channel"].decode().partition(":")[2])
        finally:
            with contextlib.suppress(*REDIS_AWAY):
                await client.aclose()

    async def _tell_redis(self, stop: asyncio.Event) -> None:
        client = self._redis()
        try:
            while not stop.is_set():
                await self._either(stop, self._posted)
                self._posted.clear()
                while self._outbox:
                    await client.publish(f"muster:{self._outbox.pop()}", b"")
        finally:
            with contextlib.suppress(*REDIS_AWAY):
                await client.aclose()

    def _redis(self) -> "redis.asyncio.Redis":
        assert self._settings.redis_url is not None
        return redis.asyncio.from_url(
            self._settings.redis_url.reveal(), socket_timeout=2, socket_connect_timeout=2
        )

    async def _either(self, stop: asyncio.Event, event: asyncio.Event) -> None:
        """Until one of them is set, at most an idle poll's time."""
        waits = [asyncio.ensure_future(e.wait()) for e in (stop, event)]
        try:
            await asyncio.wait(
                waits,
                timeout=self._settings.poll_idle.total_seconds(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for wait in waits:
                wait.cancel()

    def _on_notify(self, _connection: object, _pid: int, channel: str, _payload: object) -> None:
        self._wake(channel.removeprefix(PREFIX))

    def _wake(self, channel: str) -> None:
        for event in self._events.get(channel, ()):
            event.set()

    def _wake_all(self) -> None:
        for channel in self._events:
            self._wake(channel)
