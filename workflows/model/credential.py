"""A credential: a login that jobs use at targets."""

from typing import ClassVar

from msgspec import UNSET

from workflows.model.wire import Maybe, Properties


class CredentialProperties(Properties, frozen=True):
    READ_ONLY: ClassVar = frozenset({"lapsedServers"})
    WRITE_ONLY: ClassVar = frozenset({"password"})
    REQUIRED: ClassVar = frozenset({"username"})

    username: Maybe[str] = UNSET
    password: Maybe[str] = UNSET
    # Ours, in the place of a password: env:NAME, file:/path or vault:mount/path#key
    reference: Maybe[str] = UNSET
    servers: Maybe[list[str]] = UNSET  # that it is for; * alone = any
