"""Opens secrets: of credentials, which are sealed or references to another store, and client keys.

A reference is read again after some minutes, and at once when a target refused the secret.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self, TypeVar
from uuid import UUID

import msgspec

from engine.access.vault import Vault
from engine.model.credential import Credential
from engine.model.server import Server
from engine.process.bootstrap import Bootstrap
from muster.core import credential_references
from muster.core.clock import Clock
from muster.core.endpoint import Endpoint
from muster.core.errors import Fault, InvalidRequest, NotFound
from muster.core.sealing import PREFIX, belongs_to, belongs_to_server, open_sealed
from muster.core.settings import Secret

T = TypeVar("T")

CACHE_TIME = 300.0  # seconds
MAX_FILE_SIZE = 65_536  # bytes of a file with a password


class Credentials:
    def __init__(
        self,
        account: UUID,
        private_key: Secret,
        references: tuple[str, ...],
        clock: Clock,
        vault: Vault | None = None,
    ) -> None:
        self._account = account
        self._private_key = private_key
        self._allowed = references
        self._clock = clock
        self._vault = vault
        self._read: dict[str, tuple[float, Secret]] = {}
        # By name and reference: concurrent logins share one read.
        self._reading: dict[tuple[str, str], asyncio.Task[Secret]] = {}

    @classmethod
    def of(cls, bootstrap: Bootstrap, clock: Clock) -> Self:
        references = bootstrap.workload_settings.credential_references
        key, vault = bootstrap.private_key, Vault.of(bootstrap)
        return cls(bootstrap.account_uid, key, references, clock, vault)

    async def log_in(
        self,
        credential: Credential,
        server: Server,
        identity: UUID,
        dial: Callable[[Secret], Awaitable[T]],
    ) -> T:
        """The connection that `dial` opens with the secret; a refused secret may have changed and is read again."""
        refusal = credential.refusal(server)
        if refusal is not None:
            raise InvalidRequest(refusal, code="CredentialNotForServer")
        password = await self.open(credential, identity)
        try:
            return await dial(password)
        except InvalidRequest as fault:
            if fault.code != "TargetAuthenticationFailed":
                raise
            self._forget(credential, password)
            newer = await self.open(credential, identity)
            if newer == password:
                raise
        return await dial(newer)

    async def open(self, credential: Credential, identity: UUID) -> Secret:
        """Raises a Fault with code CredentialUnreadable, never with the secret; Unavailable if a vault is unavailable."""
        if credential.secret.startswith(PREFIX):
            context = belongs_to(self._account, identity, credential.name)
            try:
                return open_sealed(self._private_key, credential.secret, context)
            except Fault:
                why = "was sealed for another account or database."
                raise _unreadable(credential, why) from None
        return await self._open_reference(credential)

    def certify(self, endpoint: Endpoint, server: Server, identity: UUID) -> Endpoint:
        """The endpoint with the key of the server's client certificate, if there is one; for one connection.

        Raises a Fault with code ClientKeyUnreadable, never with the key.
        """
        if server.client_key is None or endpoint.ssl_mode == "disable":
            return endpoint
        context = belongs_to_server(self._account, identity, server.server_id)
        try:
            key = open_sealed(self._private_key, server.client_key, context)
        except Fault:
            raise InvalidRequest(
                f"The clientKey of the server '{server.name}' can't be opened: it was sealed for another"
                " account or database. PUT the server with its endpoint.clientKey again.",
                code="ClientKeyUnreadable",
            ) from None
        return msgspec.structs.replace(endpoint, client_key=key.reveal())

    def _forget(self, credential: Credential, refused: Secret) -> None:
        """Removes a refused secret from the cache, unless it was read again meanwhile."""
        cached = self._read.get(credential.secret)
        if cached is not None and cached[1] == refused:
            del self._read[credential.secret]

    async def _open_reference(self, credential: Credential) -> Secret:
        reference = credential.secret
        why = credential_references.malformed(reference)
        if why is not None:
            raise _unreadable(credential, f"can't be opened. {why}")
        why = credential_references.not_allowed(reference, self._allowed)
        if why is not None:
            raise _unreadable(credential, f"is {reference}. {why}")
        cached = self._read.get(reference)
        if cached is not None and self._clock.monotonic() - cached[0] < CACHE_TIME:
            return cached[1]
        key = credential.name, reference
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._read_and_cache(credential))
            reading.add_done_callback(lambda done: self._on_read(key, done))
        return await asyncio.shield(reading)

    async def _read_and_cache(self, credential: Credential) -> Secret:
        secret = Secret(await self._read_reference(credential))
        self._read[credential.secret] = (self._clock.monotonic(), secret)
        return secret

    def _on_read(self, key: tuple[str, str], done: "asyncio.Task[Secret]") -> None:
        del self._reading[key]
        if not done.cancelled():
            done.exception()  # retrieved, so that asyncio logs nothing if all callers were cancelled

    async def _read_reference(self, credential: Credential) -> str:
        match credential.secret.partition(":"):
            case "env", _, name:
                return _variable(credential, name)
            case "file", _, path:
                return await asyncio.to_thread(_file, credential, path)
            case _:
                return await self._read_vault(credential)

    async def _read_vault(self, credential: Credential) -> str:
        if self._vault is None:
            raise _missing(credential, "and no vault is named by MUSTER_VAULT_ADDRESS")
        try:
            return await self._vault.read(credential.secret)
        except Fault as fault:
            message = _missing(credential, fault.message).message
            raise type(fault)(message, code="CredentialUnreadable") from None


def _variable(credential: Credential, name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise _missing(credential, "which the launcher's environment does not have")
    return value


def _file(credential: Credential, path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            secret = file.read(MAX_FILE_SIZE).rstrip("\r\n")
    except OSError as error:
        raise _missing(credential, f"which can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _missing(credential, "which is no text in UTF-8") from None
    if not secret:
        raise _missing(credential, "which is empty")
    return secret


def _missing(credential: Credential, why: str) -> NotFound:
    """A reference is no secret, so the message may contain it."""
    message = f"The secret of the credential '{credential.name}' is {credential.secret}, {why}."
    return NotFound(message, code="CredentialUnreadable")


def _unreadable(credential: Credential, why: str) -> InvalidRequest:
    message = f"The secret of the credential '{credential.name}' {why}"
    return InvalidRequest(message, code="CredentialUnreadable")
