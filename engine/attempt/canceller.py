"""Stops a statement at a target: by a cancel request, then by pg_cancel_backend, then by pg_terminate_backend."""

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

METHOD_TIMEOUT = 3.0  # seconds until the next method is tried
STATEMENT_TIMEOUT_GRACE = 0.2  # seconds for the server's own statement_timeout


class CanceledError(Exception):
    """The attempt is to stop: nothing more is sent."""


class Canceller(Protocol):
    """How an attempt learns that it is to stop."""

    @property
    def reason(self) -> str | None: ...
    @property
    def method(self) -> str | None:
        """The method that was tried last."""

    def out_of_time(self) -> bool: ...
    def mark_sent(self) -> None: ...
    def mark_answered(self) -> None: ...


class SessionCanceller:
    """The token and the deadline cancel the statement that runs and prevent further ones."""

    def __init__(
        self,
        session: PooledConnection,
        name: str,
        token: CancelToken,
        deadline: float,
        timeout: float | None = None,
    ) -> None:
        self._method: str | None = None
        self._session = session
        self._name = name  # application_name of the attempt
        self._token = token
        self._deadline = deadline
        self._timeout = (
            METHOD_TIMEOUT if timeout is None else timeout
        )  # of all methods but the last
        self._late = False
        self._running = False
        self._answered: asyncio.Event | None = None  # while a method is tried
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def method(self) -> str | None:
        return self._method

    @property
    def reason(self) -> str | None:
        return self._token.reason or (TIMED_OUT if self._late else None)

    def __enter__(self) -> Self:
        loop = self._session.loop
        left = max(0.0, self._deadline - loop.time())
        self._timer = loop.call_later(left + STATEMENT_TIMEOUT_GRACE, self._time_out)
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

    def mark_sent(self) -> None:
        """A message is sent; `mark_answered` follows when the target has replied."""
        if self.reason:
            raise CanceledError
        self._running = True

    def mark_answered(self) -> None:
        self._running = False
        if self._answered:
            self._answered.set()

    def _time_out(self) -> None:
        self._late = True
        self._wake()

    def _wake(self) -> None:
        if self._task is None and self._running:
            self._answered = asyncio.Event()
            self._task = self._session.spawn(self._escalate())

    async def _escalate(self) -> None:
        methods: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("protocol", self._session.result_reader.cancel),
            ("pg_cancel_backend", lambda: self._execute(Q.cancel_backend)),
            ("pg_terminate_backend", lambda: self._execute(Q.terminate_backend)),
        )
        for name, cancel in methods:
            timeout = METHOD_TIMEOUT if cancel is methods[-1][1] else self._timeout
            self._method = name
            # A late signal must not hit the next user of the session.
            self._session.unusable = True
            if await self._succeeds(cancel, timeout):
                return
        self._session.terminate()

    async def _succeeds(self, cancel: Callable[[], Awaitable[None]], timeout: float) -> bool:  # noqa: ASYNC109 - of the reply too
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                with contextlib.suppress(OSError, Fault, asyncpg.PostgresError):
                    await cancel()
                assert self._answered
                await self._answered.wait()
        return not self._running

    async def _execute(self, query: str) -> None:
        async with self._session.second_connection() as other:
            pid = None if self._session.pooled else self._session.backend_pid
            await other.fetch(query, pid, self._name)
