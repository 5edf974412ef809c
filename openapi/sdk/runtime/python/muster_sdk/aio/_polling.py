"""Work that goes on after its request was answered."""

from __future__ import annotations

import time
from asyncio import sleep
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx

from muster_sdk._decoding import decoded
from muster_sdk._http import API_VERSION, Request, retry_after
from muster_sdk.aio._transport import Transport
from muster_sdk.errors import OperationFailed, described
from muster_sdk.models import JobExecution

T = TypeVar("T")
ENDED = frozenset({"Succeeded", "Failed", "Canceled"})
PAUSE = 1.0  # seconds between two looks where the API names none


class _Poller(Generic[T]):
    _done = False
    _pause = PAUSE

    async def status(self) -> str:
        """How far it is; asks the API unless it has ended."""
        raise NotImplementedError

    async def _result(self) -> T:
        raise NotImplementedError

    async def done(self) -> bool:
        """Whether it has ended; asks the API unless that is known."""
        if not self._done:
            await self.status()
        return self._done

    async def result(self, timeout: float | None = None) -> T:
        """Waits for the end; TimeoutError when it has not come after so many seconds."""
        limit = None if timeout is None else time.monotonic() + timeout
        while not await self.done():
            if limit is not None and time.monotonic() + self._pause > limit:
                raise TimeoutError(f"It has not ended after {timeout:g} s.")
            await sleep(self._pause)
        return await self._result()


class OperationPoller(_Poller[T]):
    """A long-running operation: creating, changing or deleting something that takes a while."""

    def __init__(
        self, transport: Transport, response: httpx.Response, shape: type[T], final: Request
    ) -> None:
        self._transport = transport
        self._response = response
        self._shape = shape
        self._final = final
        self._url = response.headers.get("azure-asyncoperation")
        self._last: dict[str, Any] = {"status": "InProgress" if self._url else "Succeeded"}
        self._done = self._url is None

    async def status(self) -> str:
        """InProgress, Succeeded, Failed or Canceled; asks the API unless it has ended."""
        if not self._done and self._url is not None:
            response = await self._transport.send(Request("GET", self._url))
            self._last = decoded(dict[str, Any], response)
            self._pause = retry_after(response.headers) or PAUSE
            self._done = self._last["status"] in ENDED
        return str(self._last["status"])

    async def _result(self) -> T:
        """The resource as it is after the operation; OperationFailed if that did not succeed."""
        if self._last["status"] != "Succeeded":
            error = self._last.get("error") or {"code": f"Operation{self._last['status']}"}
            raise described(error, OperationFailed)
        if self._shape is type(None):
            return decoded(self._shape, httpx.Response(204))
        if self._url is None:
            return decoded(self._shape, self._response)
        return decoded(self._shape, await self._transport.send(self._final))


class ExecutionPoller(_Poller[JobExecution]):
    """A run of a job. Its result is the run as it ended, also when that is Failed."""

    def __init__(self, transport: Transport, execution: JobExecution) -> None:
        self._transport = transport
        self.execution = execution
        url = f"{transport.url}{quote(execution.id, safe='/')}"
        self._request = Request("GET", url, {"api-version": API_VERSION})
        self._done = execution.provisioning_state in ENDED

    async def status(self) -> str:
        """The lifecycle: Created, InProgress, …, Succeeded; asks the API unless it has ended."""
        if not self._done:
            self.execution = decoded(JobExecution, await self._transport.send(self._request))
            self._done = self.execution.provisioning_state in ENDED
        return str(self.execution.lifecycle)

    async def _result(self) -> JobExecution:
        return self.execution
