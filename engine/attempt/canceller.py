"""Stops what runs at a target: by the protocol, then by pg_cancel_backend, then by pg_terminate_backend."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol, Self

import asyncpg

from engine.attempt.cancel_token import TIMED_OUT, CancelToken
from engine.pool.pooled_connection import PooledConnection
from muster.core.errors import Fault
from muster.core.sql import Queries

Q = Queries("engine.access", "target.sql")

STEP = 3.0  # seconds that each way has, if nobody says otherwise
GRACE = 0.2  # seconds that the server has to time out by itself


class CanceledError(Exception):
    """Nothing more is sent."""


class Canceller(Protocol):
    """What an attempt knows of the wish to end it."""

    @property
    def reason(self) -> str | None: ...
    @property
    def needed(self) -> str | None:
        """What it took."""

    def out_of_time(self) -> bool: ...
    def depart(self) -> None: ...
    def land(self) -> None: ...


class SessionCanceller:
    """Watches over an attempt: the token and the deadline end what flies and ground the rest."""

    def __init__(
        self,
        session: PooledConnection,
        name: str,
        token: CancelToken,
        deadline: float,
        patience: float | None = None,
    ) -> None:
        self._needed: str | None = None
        self._session = session
        self._name = name  # application_name of the attempt
        self._token = token
        self._deadline = deadline
        self._patience = STEP if patience is None else patience  # with each way but the last
        self._late = False
        self._flying = False
        self._landed: asyncio.Event | None = None  # while we wait for it
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def needed(self) -> str | None:
        return self._needed

    @property
    def reason(self) -> str | None:
        return self._token.reason or (TIMED_OUT if self._late else None)

    def __enter__(self) -> Self:
        loop = self._session.loop
        left = max(0.0, self._deadline - loop.time())
        self._timer = loop.call_later(left + GRACE, self._time_out)
        self._token.listen(self._wake)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._token.listen(None)
        if self._timer:
            self._timer.cancel()
        if self._task:
            self._task.cancel()

    def out_of_time(self) -> bool:
        return self._late or self._session.loop.time() >= self._deadline

    def depart(self) -> None:
        """Something is said to the target; it lands when the target has answered."""
        if self.reason:
            raise CanceledError
        self._flying = True

    def land(self) -> None:
        self._flying = False
        if self._landed:
            self._landed.set()

    def _time_out(self) -> None:
        self._late = True
        self._wake()

    def _wake(self) -> None:
        if self._task is None and self._flying:
            self._landed = asyncio.Event()
            self._task = self._session.spawn(self._escalate())

    async def _escalate(self) -> None:
        ways: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("protocol", self._session.ear.cancel),
            ("pg_cancel_backend", lambda: self._beside(Q.cancel_backend)),
            ("pg_terminate_backend", lambda: self._beside(Q.terminate_backend)),
        )
        for name, way in ways:
            patience = STEP if way is ways[-1][1] else self._patience
            self._needed = name
            # A signal may come late: nobody else may be hit by it.
            self._session.spoiled = True
            if await self._tried(way, patience):
                return
        self._session.hang_up()

    async def _tried(self, way: Callable[[], Awaitable[None]], patience: float) -> bool:
        """Whether it has landed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                with contextlib.suppress(OSError, Fault, asyncpg.PostgresError):
                    await way()
                assert self._landed
                await self._landed.wait()
        return not self._flying

    async def _beside(self, order: str) -> None:
        async with self._session.beside() as other:
            pid = None if self._session.pooled else self._session.backend_pid
            await other.fetch(order, pid, self._name)
