"""Sends requests, and sends them again when the API asks for that."""

from __future__ import annotations

from asyncio import sleep
from typing import Any

import httpx

from muster_sdk._http import (
    Request,
    Token,
    same_origin,
    trust,
    wait_after_failure,
    wait_before_retry,
)
from muster_sdk.errors import refused


class Transport:
    """One pool of connections to one API."""

    def __init__(
        self, url: str, token: Token, *, ca: str | None, timeout: float, retries: int
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._retries = retries
        self._http = httpx.AsyncClient(verify=trust(ca), timeout=timeout)

    async def send(self, request: Request, *, stream: bool = False) -> httpx.Response:
        """An answer that says yes; all others are raised."""
        arguments = request.arguments(self._token)
        arguments["url"] = httpx.URL(same_origin(str(arguments["url"]), f"{self.url}/"))
        extensions: dict[str, Any] = {}
        if stream:  # events may be far apart
            extensions["timeout"] = {**self._http.timeout.as_dict(), "read": 60.0}
        attempt = 0
        while True:
            try:
                sent = self._http.build_request(**arguments, extensions=extensions or None)
                response = await self._http.send(sent, stream=stream)
            except httpx.TransportError as error:
                await sleep(wait_after_failure(attempt, self._retries, error))
            else:
                wait = wait_before_retry(attempt, self._retries, response)
                if wait is None:
                    break
                await response.aclose()
                await sleep(wait)
            attempt += 1
        if response.is_success:
            return response
        body = await response.aread()
        await response.aclose()
        raise refused(response.status_code, response.headers, body)

    async def close(self) -> None:
        await self._http.aclose()
