"""Requests, and when one is sent again: what both forms of the client do in the same way."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import msgspec

from muster_sdk._model import write
from muster_sdk._version import VERSION
from muster_sdk.errors import ConnectionFailed, MusterError

API_VERSION = "2025-01-01"
BACKOFF = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds before a retry where the answer names none
LONGEST_WAIT = 60.0  # seconds; a longer Retry-After is not waited for
READS = frozenset({"GET", "HEAD"})
Token = str | Callable[[], str]


@dataclass(frozen=True)
class Request:
    """One call; its id is the key of a write, so that it takes effect once however often it is sent."""

    method: str
    url: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str | None] = field(default_factory=dict)
    body: Any = None
    id: str = field(default_factory=lambda: str(uuid4()))

    def arguments(self, token: Token) -> dict[str, Any]:
        """What httpx takes."""
        headers = {name: value for name, value in self.headers.items() if value is not None}
        headers |= {
            "Authorization": f"Bearer {token if isinstance(token, str) else token()}",
            "User-Agent": f"muster-sdk-python/{VERSION}",
            "x-ms-client-request-id": self.id,
        }
        if self.method not in READS:
            headers.setdefault("Idempotency-Key", self.id)
        content = None
        if self.body is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(write(self.body))
        query = {name: _text(value) for name, value in self.query.items() if value is not None}
        return {
            "method": self.method,
            "url": httpx.URL(self.url).copy_merge_params(query) if query else self.url,
            "headers": headers,
            "content": content,
        }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return str(value)


def wait_before_retry(attempt: int, retries: int, response: httpx.Response) -> float | None:
    """Seconds; None when the answer is to be taken as it is."""
    if response.status_code not in {429, 503} or attempt >= retries:
        return None
    wait = retry_after(response.headers)
    if wait is None:
        wait = BACKOFF[min(attempt, len(BACKOFF) - 1)]
    return wait if wait <= LONGEST_WAIT else None


def wait_after_failure(attempt: int, retries: int, error: httpx.TransportError) -> float:
    """Seconds; raises after the last retry."""
    if attempt >= retries:
        raise ConnectionFailed("ConnectionFailed", f"{type(error).__name__}: {error}") from error
    return BACKOFF[min(attempt, len(BACKOFF) - 1)]


def retry_after(headers: Mapping[str, str]) -> float | None:
    try:
        return float(headers["retry-after"])
    except (KeyError, ValueError):
        return None


def trust(ca: str | None) -> ssl.SSLContext:
    """The certificate authorities of the system, and one more."""
    context = ssl.create_default_context()
    if ca is not None:
        context.load_verify_locations(cafile=ca)
    return context


def same_origin(url: str, base: str) -> str:
    """Links of answers are followed with the token, so they must lead to the same API."""
    there, here = httpx.URL(base).join(url), httpx.URL(base)
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
        raise MusterError(
            "ForeignLink", f"The API linked to {there.host}, which is not {here.host}."
        )
    return str(there)
