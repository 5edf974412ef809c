"""Answers that are read while they arrive: events and files."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx

from muster_sdk._http import Request
from muster_sdk.aio._transport import Transport
from muster_sdk.errors import ConnectionFailed
from muster_sdk.events import Event, Parser

PAUSE = 2.0  # seconds before a stream that was cut off is asked for again
LAST = "end"  # the kind of the event after which there are no more
FAILURES = 5  # streams in a row that had no event


class EventStream:
    """Events as they happen; a stream that is cut off goes on where it was."""

    def __init__(self, transport: Transport, request: Request) -> None:
        self._transport = transport
        self._request = request
        self._follow = request.query.get("follow") is not False

    async def __aiter__(self) -> AsyncIterator[Event]:
        number: int | None = None
        failures = 0
        while True:
            position = {} if number is None else {"Last-Event-ID": str(number)}
            response = await self._transport.send(
                replace(self._request, headers=position), stream=True
            )
            parser = Parser()
            try:
                async for piece in response.aiter_bytes():
                    for event in parser.feed(piece):
                        failures = 0
                        number = number if event.number is None else event.number
                        if event.kind == LAST:
                            return
                        yield event
            except httpx.TransportError as error:
                failures += 1
                if failures == FAILURES:
                    raise ConnectionFailed("ConnectionFailed", str(error)) from error
            finally:
                await response.aclose()
            if not self._follow:
                return
            await sleep(PAUSE)


class Download:
    """A file with all rows, which is never held in memory as a whole."""

    def __init__(self, transport: Transport, request: Request) -> None:
        self._transport = transport
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Piece by piece; ConnectionFailed when the API can't complete the file."""
        response = await self._transport.send(self._request, stream=True)
        try:
            async for piece in response.aiter_bytes():
                yield piece
        except httpx.TransportError as error:
            raise ConnectionFailed("IncompleteFile", str(error)) from error
        finally:
            await response.aclose()

    async def text(self) -> str:
        """All of it."""
        return b"".join([piece async for piece in self]).decode()

    async def save(self, path: str | Path) -> None:
        """Writes it to a file."""
        with Path(path).open("wb") as file:
            async for piece in self:
                file.write(piece)
