"""Answers as models."""

from __future__ import annotations

from typing import Any, TypeVar

import httpx
import msgspec

from muster_sdk._model import Resource, read
from muster_sdk.errors import UnexpectedAnswer

T = TypeVar("T")


def decoded(shape: type[T], response: httpx.Response) -> T:
    """The body, or None where it is empty. The ETag of the answer is that of the resource."""
    content = json(response)
    etag = response.headers.get("etag")
    if (
        etag
        and isinstance(content, dict)
        and isinstance(shape, type)
        and issubclass(shape, Resource)
    ):
        content = {**content, "etag": etag}
    return checked(shape, content, response)


def checked(shape: type[T], content: Any, response: httpx.Response) -> T:
    try:
        return read(shape, content)
    except msgspec.ValidationError as error:
        raise unexpected(response, error) from error


def json(response: httpx.Response) -> Any:
    try:
        return msgspec.json.decode(response.content) if response.content else None
    except msgspec.DecodeError as error:
        raise unexpected(response, error) from error


def unexpected(response: httpx.Response, why: Exception) -> UnexpectedAnswer:
    return UnexpectedAnswer(
        "UnexpectedAnswer", f"{response.url.path}: {why}", status=response.status_code
    )
