"""The REST API as the provider needs it: one request after another, errors as the API tells them."""

import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from muster_terraform import VERSION
from muster_terraform.attributes import Document

API_VERSION = "2025-01-01"
DEFAULT_URL = "http://127.0.0.1:8080"
REQUEST_LIMIT = 60.0  # seconds for one request
BUSY_LIMIT = 60.0  # seconds that a busy API is asked again
BUSY = frozenset({429, 503})
ETAG = "etag"  # in a document that was read
POLL = 1.0  # seconds between two looks at an operation that names no other pause
LONGEST_PAUSE = 5.0


@dataclass
class ApiError(Exception):
    """What the API or the network refused."""

    code: str
    message: str
    target: str = ""
    status: int = 0
    details: tuple["ApiError", ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A token goes to nobody but the address that was configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass
class Api:
    url: str
    token: str
    ca_file: str | None = None
    operation_limit: float = 1800.0  # seconds
    stopped: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        if urlsplit(self.url).scheme not in {"http", "https"}:
            raise ApiError(
                "InvalidUrl", f"'{self.url}' is not an address such as https://host:port.", "url"
            )
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.url.startswith("https:"):
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ApiError("InvalidCaFile", f"{self.ca_file}: {error}", "ca_file") from None
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self._opener = urllib.request.build_opener(*handlers)

    def find(self, path: str) -> Document | None:
        """None when it is not there. Its ETag is in it where the API gives one."""
        try:
            headers, document = self._send("GET", path)
            return document and {ETAG: headers.get("etag"), **document}
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def all(self, path: str) -> list[Document]:
        items: list[Document] = []
        link: str | None = path
        while link:
            page = self._send("GET", link)[1] or {}
            items += page["value"]
            link = page.get("nextLink")
        return items

    def put(self, path: str, body: Document, *, new: bool, etag: str | None) -> None:
        """Returns when it is done, also when that takes longer than the request. Only of what is still as it was read."""
        condition = {"If-None-Match": "*"} if new else {"If-Match": etag} if etag else {}
        self._finish(*self._send("PUT", path, body, condition))

    def delete(self, path: str) -> None:
        try:
            self._finish(*self._send("DELETE", path))
        except ApiError as error:
            if error.status != 404:
                raise

    def _finish(self, headers: dict[str, str], document: Document | None) -> None:
        link = headers.get("azure-asyncoperation")
        deadline = time.monotonic() + self.operation_limit
        while link:
            pause = min(float(headers.get("retry-after", POLL)), LONGEST_PAUSE)
            if self.stopped.wait(pause):
                raise ApiError(
                    "Interrupted", "Terraform was interrupted; the operation goes on in Muster."
                )
            if time.monotonic() > deadline:
                message = f"The operation has not ended within {self.operation_limit:g} s; it goes on in Muster."
                raise ApiError("OperationTimeout", message)
            headers, document = self._send("GET", link)
            status = (document or {}).get("status", "")
            if status == "Succeeded":
                return
            if status in {"Failed", "Canceled"}:
                raise _error((document or {}).get("error") or {"code": status}, 0)

    def _send(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        more: dict[str, str] | None = None,
    ) -> tuple[dict[str, str], Document | None]:
        request = urllib.request.Request(  # noqa: S310 - the scheme was checked
            self._address(path),
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "User-Agent": f"terraform-provider-muster/{VERSION}",
                **({"Content-Type": "application/json"} if body is not None else {}),
                **({"Idempotency-Key": str(uuid.uuid4())} if method != "GET" else {}),
                **(more or {}),
            },
        )
        deadline = time.monotonic() + BUSY_LIMIT
        while True:
            try:
                with self._opener.open(request, timeout=REQUEST_LIMIT) as answer:
                    return _headers(answer), _json(answer.read())
            except urllib.error.HTTPError as refused:
                with refused:
                    headers, document = _headers(refused), _json(refused.read())
                pause = min(float(headers.get("retry-after", POLL)), LONGEST_PAUSE)
                if refused.code not in BUSY or time.monotonic() + pause > deadline:
                    error = (document or {}).get("error") or {"code": f"Http{refused.code}"}
                    raise _error(error, refused.code) from None
            except (OSError, HTTPException) as error:
                reason = getattr(error, "reason", error)
                raise ApiError("NoAnswer", f"{self.url} does not answer: {reason}") from None
            if self.stopped.wait(pause):
                raise ApiError("Interrupted", "Terraform was interrupted.")

    def _address(self, path: str) -> str:
        """Of an id or a link: links come with a query of their own."""
        if path.startswith(("http://", "https://")):
            link = urlsplit(path)  # the host may be another name of the same API
            return f"{self.url}{link.path}?{link.query}"
        return f"{self.url}{quote(path, safe='/')}?api-version={API_VERSION}"


def _headers(answer: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def _json(text: bytes) -> Document | None:
    try:
        document = json.loads(text) if text else None
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _error(error: Document, status: int) -> ApiError:
    return ApiError(
        code=error.get("code", "Unknown"),
        message=error.get("message") or "The API gave no reason.",
        target=error.get("target") or "",
        status=status,
        details=tuple(_error(each, status) for each in error.get("details") or ()),
    )


def surroundings(name: str) -> str | None:
    """A variable, or the content of the file that NAME_FILE names."""
    if value := os.environ.get(name):
        return value
    if path := os.environ.get(f"{name}_FILE"):
        return Path(path).read_text(encoding="utf-8").strip()
    return None
