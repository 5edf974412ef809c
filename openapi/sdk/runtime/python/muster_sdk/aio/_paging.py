"""Lists that arrive page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

from muster_sdk._decoding import checked, decoded
from muster_sdk._http import Request
from muster_sdk.aio._transport import Transport

T = TypeVar("T")


class Pager(Generic[T]):
    """All elements, fetched while they are read: `async for job in account.jobs.list()`."""

    def __init__(
        self, transport: Transport, first: Request, shape: type[T], *, whole: bool
    ) -> None:
        self._transport = transport
        self._first = first
        self._shape = shape
        self._whole = whole  # a page is one element, with the link to the next

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.by_page():
            for each in page:
                yield each

    async def by_page(self) -> AsyncIterator[list[T]]:
        """The same, page by page. A page may be empty and still not be the last one."""
        request: Request | None = self._first
        while request is not None:
            response = await self._transport.send(request)
            page = decoded(dict[str, Any], response)
            elements = [page] if self._whole else page.get("value") or []
            yield [checked(self._shape, each, response) for each in elements]
            link = page.get("nextLink")
            request = Request("GET", link) if link else None
