"""Credentials, as the control database describes them; secrets are sealed or references."""

import re
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

import msgspec

from engine.model.server import Server
from muster.core import variables
from muster.core.errors import InvalidRequest


class CredentialServer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A server that a credential is for, and the endpoint that the server had then."""

    server_id: str
    endpoint: str


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    username: str
    secret: str
    servers: tuple[CredentialServer, ...] | None = None  # None: any

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """A row of read_credentials."""
        fields = dict(row)
        if isinstance(fields["servers"], str):
            fields["servers"] = msgspec.json.decode(fields["servers"])
        return msgspec.convert(fields, cls)

    def refusal(self, server: Server) -> str | None:
        """Why the credential must not be used at that server; None when it may."""
        if self.servers is None:
            return None
        entry = next((each for each in self.servers if each.server_id == server.server_id), None)
        if entry is None:
            return (
                f"The credential '{self.name}' lists the servers that it is for, and '{server.name}' is not one of "
                f"them. Add it to the credential's servers, or use another credential."
            )
        if entry.endpoint != server.endpoint_id:
            return (
                f"The endpoint of the server '{server.name}' has changed since the credential '{self.name}' listed "
                f"it. If that is right, set the credential's servers again."
            )
        return None


class VersionedCredential(Credential, frozen=True, kw_only=True):
    credential_id: UUID
    row_version: int

    def with_variables(self, values: Mapping[str, str]) -> Self:
        """The credential with the user name that it has on one target."""
        if "$(" not in self.username:
            return self
        return msgspec.structs.replace(self, username=render_name(self.username, values))


def render_name(text: str, values: Mapping[str, str]) -> str:
    """A role's or user's name with its variables replaced; a name contains nothing that could be quoted."""

    def value(use: re.Match[str]) -> str:
        name = use["name"]
        if name not in values or "\0" in values[name]:
            raise InvalidRequest(f"$({name}) has no value here.", code=variables.UNKNOWN)
        return values[name]

    return variables.USE.sub(value, text)
