"""How a command is sent, and how a failure is returned: CommandError ⇄ Fault."""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from muster.core.errors import (
    Conflict,
    Fault,
    FieldError,
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    Throttled,
    Unauthenticated,
    Unavailable,
)
from nodeagent.command_table import Spec
from nodeagent.protocol import Door, Login


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/accounts/{account_uid}/commands/{command_id}."""

    command: str
    args: msgspec.Raw
    login: Login
    caller: str = "muster"
    door: Door = Door.FSM


def digest(spec: Spec, args: msgspec.Struct) -> str:
    """What makes two commands the same; without secrets, which never seal alike."""
    plain: Any = args
    if spec.sealed:
        plain = msgspec.to_builtins(args)
        for name in spec.sealed:
            plain.pop(name, None)
    return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).hexdigest()


# Errors on the wire: kind and status of each Fault, once

KINDS: Mapping[type[Fault], int] = {
    InvalidRequest: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    Throttled: 429,
    Internal: 500,
    Unavailable: 503,
}
_BY_NAME = {kind.__name__: kind for kind in KINDS}


class CommandError(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    code: str
    message: str
    target: str | None = None
    details: tuple[tuple[str, str, str], ...] = ()
    retry_after: int | None = None

    @classmethod
    def of(cls, fault: Fault) -> "CommandError":
        kind = next(kind for kind in type(fault).__mro__ if kind in KINDS)
        return cls(
            kind=kind.__name__,
            code=fault.code,
            message=fault.message,
            target=fault.target,
            details=tuple((each.target, each.message, each.code) for each in fault.details),
            retry_after=fault.retry_after,
        )

    @property
    def status(self) -> int:
        return KINDS[_BY_NAME[self.kind]]

    def fault(self) -> Fault:
        """A kind that we do not know comes from a newer agent: our side can't judge it."""
        return _BY_NAME.get(self.kind, Internal)(
            self.message,
            code=self.code,
            target=self.target,
            details=[FieldError(*each) for each in self.details],
            retry_after=self.retry_after,
        )
