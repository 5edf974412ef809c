"""Every failure that Muster can name, defined once and mapped once per exit.

Fault                     message (for the customer), code, target, details, context (ours);
│                         sqlstate and detail: what a PostgreSQL server answered, in its own words
├── InvalidRequest        the request can never succeed as it is
├── Unauthenticated       we do not know who asks
├── Forbidden             we know, and the answer is no
├── NotFound              what it names is not there
├── Conflict              not now, or not in this state
├── PreconditionFailed    If-Match / If-None-Match did not hold
├── Throttled             too often
├── Unavailable           something we depend on is away; the same request may succeed later
└── Internal              our mistake

A new code is a `code=` argument, not a new kind. A Fault knows no HTTP status.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field: where, what, and the ARM code for it."""

    target: str
    message: str
    code: str = "InvalidParameterValue"


class Fault(Exception):  # noqa: N818 - the tree is named in the docstring
    default_code: ClassVar[str] = "InternalServerError"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        target: str | None = None,
        details: Sequence[FieldError] = (),
        context: str = "",
        retry_after: int | None = None,
        sqlstate: str | None = None,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.target = target
        self.details = tuple(details)
        self.context = context
        self.retry_after = retry_after  # seconds; only where a re-send is wanted
        self.sqlstate = sqlstate
        self.detail = detail  # a stranger's words: cleaned, bounded, without any secret of ours


class InvalidRequest(Fault):
    default_code = "InvalidRequestContent"


class Unauthenticated(Fault):
    default_code = "AuthenticationFailed"


class Forbidden(Fault):
    default_code = "AuthorizationFailed"


class NotFound(Fault):
    default_code = "ResourceNotFound"


class Conflict(Fault):
    default_code = "Conflict"


class PreconditionFailed(Fault):
    default_code = "PreconditionFailed"


class Throttled(Fault):
    default_code = "TooManyRequests"


class Unavailable(Fault):
    default_code = "ServiceUnavailable"


class Internal(Fault):
    default_code = "InternalServerError"


def refuse(errors: Sequence[FieldError]) -> None:
    """Raises one InvalidRequest that carries every error; nothing when there is none."""
    if not errors:
        return
    first = errors[0]
    message = first.message
    if len(errors) > 1:
        message = f"{len(errors)} fields are wrong; the first: {first.target}: {first.message}"
    raise InvalidRequest(
        message,
        code=first.code,
        target=first.target,
        details=errors if len(errors) > 1 else (),
    )
