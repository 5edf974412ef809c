"""What goes wrong: one class, with a subclass for each kind of refusal that a program may want to catch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class MusterError(Exception):
    """`code` and `message` as the API has them; `details` are the single fields that were wrong."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int | None = None,
        target: str | None = None,
        details: Sequence[MusterError] = (),
        request_id: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        self.target = target
        self.details = tuple(details)
        self.request_id = request_id


class ConnectionFailed(MusterError):
    """The API could not be reached, or the answer did not arrive."""


class UnexpectedAnswer(MusterError):
    """The answer is not one of this API."""


class BadRequest(MusterError):
    """400: the request can never succeed as it is."""


class Unauthorized(MusterError):
    """401: no token, or an invalid one."""


class Forbidden(MusterError):
    """403: the caller has no role that allows it."""


class NotFound(MusterError):
    """404: the resource does not exist."""


class Conflict(MusterError):
    """409: not possible now, or not in the present state."""


class PreconditionFailed(MusterError):
    """412: the resource has changed, or exists already."""


class TooManyRequests(MusterError):
    """429, also after all retries."""


class ServiceUnavailable(MusterError):
    """503, also after all retries."""


class NotModified(MusterError):
    """304: the resource still has the ETag that `if_none_match` names."""


class OperationFailed(MusterError):
    """A long-running operation ended as Failed or Canceled."""


BY_STATUS: dict[int, type[MusterError]] = {
    304: NotModified,
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: PreconditionFailed,
    429: TooManyRequests,
    503: ServiceUnavailable,
}


def refused(status: int, headers: Mapping[str, str], body: bytes) -> MusterError:
    """The error of an answer, whatever its body is."""
    kind = BY_STATUS.get(status, MusterError)
    try:
        error = msgspec.json.decode(body)["error"]
        return described(error, kind, status=status, request_id=headers.get("x-ms-request-id"))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        text = body[:500].decode("utf-8", "replace") or f"The API answered {status}."
        return kind(f"Http{status}", text, status=status, request_id=headers.get("x-ms-request-id"))


def described(error: dict[str, Any], kind: type[MusterError], **more: Any) -> MusterError:
    """From the object `error` of the API."""
    details = [described(each, MusterError) for each in error.get("details") or ()]
    return kind(
        str(error["code"]),
        str(error.get("message", "")),
        target=error.get("target"),
        details=details,
        **more,
    )
