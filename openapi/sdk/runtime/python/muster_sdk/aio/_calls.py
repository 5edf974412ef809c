"""What the generated classes are made of: one helper for each kind of operation."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from typing import Any, Self, TypeVar
from urllib.parse import quote

from muster_sdk._decoding import checked, decoded
from muster_sdk._http import API_VERSION, Request, Token
from muster_sdk.aio._paging import Pager
from muster_sdk.aio._polling import ExecutionPoller, OperationPoller
from muster_sdk.aio._streams import Download, EventStream
from muster_sdk.aio._transport import Transport
from muster_sdk.errors import NotFound
from muster_sdk.models import JobExecution

T = TypeVar("T")


class Calls:
    """A path of the API with the operations below it."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    @staticmethod
    def _quote(name: str | int) -> str:
        text = quote(str(name), safe="")
        if text in {"", ".", ".."}:
            raise ValueError(f"{name!r} is no name of a resource")
        return text

    @staticmethod
    def _place(id: str, template: str) -> str:
        """The id as a path, if it is one of such a resource."""
        pattern = re.sub(r"{\w+}", "[^/]+", template)
        if not re.fullmatch(pattern, id, re.IGNORECASE):
            raise ValueError(f"{id!r} is no id such as {template}")
        return quote(id, safe="/")

    def _request(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        fields: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Request:
        """`fields` make a body of those that are given; `body` is sent as it is."""
        if fields is not None:
            body = {name: each for name, each in fields.items() if each is not None} or None
        url = f"{self._transport.url}{self._path}{path}"
        return Request(
            method, url, {"api-version": API_VERSION, **(query or {})}, headers or {}, body
        )

    async def _call(self, method: str, path: str, shape: type[T], **more: Any) -> T:
        response = await self._transport.send(self._request(method, path, **more))
        return decoded(shape, response)

    async def _listed(
        self, method: str, path: str, shape: type[T], **more: Any
    ) -> builtins.list[T]:
        response = await self._transport.send(self._request(method, path, **more))
        elements = decoded(dict[str, Any], response)["value"]
        return [checked(shape, each, response) for each in elements]

    async def _exists(self, method: str, path: str, **more: Any) -> bool:
        try:
            await self._transport.send(self._request(method, path, **more))
        except NotFound:
            return False
        return True

    async def _begin(
        self, method: str, path: str, shape: type[T], **more: Any
    ) -> OperationPoller[T]:
        request = self._request(method, path, **more)
        response = await self._transport.send(request)
        final = Request("GET", request.url, {"api-version": API_VERSION})
        return OperationPoller(self._transport, response, shape, final)

    async def _execution(
        self, method: str, path: str, shape: type[JobExecution], **more: Any
    ) -> ExecutionPoller:
        execution = await self._call(method, path, shape, **more)
        return ExecutionPoller(self._transport, execution)

    def _pages(self, path: str, shape: type[T], **more: Any) -> Pager[T]:
        return Pager(self._transport, self._request("GET", path, **more), shape, whole=False)

    def _parts(self, path: str, shape: type[T], **more: Any) -> Pager[T]:
        return Pager(self._transport, self._request("GET", path, **more), shape, whole=True)

    def _events(self, path: str, **more: Any) -> EventStream:
        return EventStream(self._transport, self._request("GET", path, **more))

    def _download(self, path: str, **more: Any) -> Download:
        return Download(self._transport, self._request("GET", path, **more))


class Connection(Calls):
    """Where the API is and who asks: `async with Client(url, token) as client`."""

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        ca: str | None = None,
        timeout: float = 60.0,
        retries: int = 5,
    ) -> None:
        """A client of the API at `url`.

        token: A bearer token, or a function that is asked for one before each request.
        ca: File with the certificate authority of the API, beside those of the system.
        timeout: Seconds that one request may take.
        retries: How often a request is sent again after 429, 503 or a lost connection.
        """
        super().__init__(Transport(url, token, ca=ca, timeout=timeout, retries=retries), "")

    async def close(self) -> None:
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
