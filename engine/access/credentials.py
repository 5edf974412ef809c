"""Opens secrets where they are used: those of credentials, sealed or references to outside, and client keys.

References are re-read after a while, and at once when a target refused what they said.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Self, TypeVar
from uuid import UUID

import msgspec

from engine.access.vault import Vault
from engine.model.group_document import Credential, Server
from engine.process.bootstrap import Bootstrap
from muster.core import credential_references
from muster.core.clock import Clock
from muster.core.endpoint import Endpoint
from muster.core.errors import Fault, InvalidRequest, NotFound
from muster.core.sealing import PREFIX, belongs_to, belongs_to_server, open_sealed
from muster.core.settings import Secret

T = TypeVar("T")

KEPT = 300.0  # seconds
LONGEST = 65_536  # bytes of a file that holds a password


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
        # By name and reference: many targets log in at once, and all hear what one of them finds.
        self._reading: dict[tuple[str, str], asyncio.Task[Secret]] = {}

    @classmethod
    def of(cls, bootstrap: Bootstrap, clock: Clock) -> Self:
        references = bootstrap.given.credential_references
        key, vault = bootstrap.private_key, Vault.of(bootstrap)
        return cls(bootstrap.account_uid, key, references, clock, vault)

    async def log_in(
        self,
        credential: Credential,
        server: Server,
        identity: UUID,
        dial: Callable[[Secret], Awaitable[T]],
    ) -> T:
        """What `dial` makes of the secret; one that is refused may have changed, and is read again."""
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
        """A Fault with code CredentialUnreadable, which may pass where a vault is away; never with the secret in it."""
        if credential.secret.startswith(PREFIX):
            context = belongs_to(self._account, identity, credential.name)
            try:
                return open_sealed(self._private_key, credential.secret, context)
            except Fault:
                why = "was sealed for another account or database."
                raise _unreadable(credential, why) from None
        return await self._referred(credential)

    def certify(self, endpoint: Endpoint, server: Server, identity: UUID) -> Endpoint:
        """For one connect: with the key of the certificate that the server is shown, if there is one.

        A Fault with code ClientKeyUnreadable; never with the key in it.
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
        """A target refused it, so it may have changed; what somebody has read since then is kept."""
        known = self._read.get(credential.secret)
        if known is not None and known[1] == refused:
            del self._read[credential.secret]

    async def _referred(self, credential: Credential) -> Secret:
        reference = credential.secret
        why = credential_references.malformed(reference)
        if why is not None:
            raise _unreadable(credential, f"can't be opened. {why}")
        why = credential_references.not_allowed(reference, self._allowed)
        if why is not None:
            raise _unreadable(credential, f"is {reference}. {why}")
        known = self._read.get(reference)
        if known is not None and self._clock.monotonic() - known[0] < KEPT:
            return known[1]
        key = credential.name, reference
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.create_task(self._keep(credential))
            reading.add_done_callback(lambda done: self._is_read(key, done))
        return await asyncio.shield(reading)

    async def _keep(self, credential: Credential) -> Secret:
        secret = Secret(await self._read_anew(credential))
        self._read[credential.secret] = (self._clock.monotonic(), secret)
        return secret

    def _is_read(self, key: tuple[str, str], done: "asyncio.Task[Secret]") -> None:
        del self._reading[key]
        if not done.cancelled():
            done.exception()  # whoever waited for it may be gone

    async def _read_anew(self, credential: Credential) -> str:
        match credential.secret.partition(":"):
            case "env", _, name:
                return _variable(credential, name)
            case "file", _, path:
                return await asyncio.to_thread(_file, credential, path)
            case _:
                return await self._in_vault(credential)

    async def _in_vault(self, credential: Credential) -> str:
        if self._vault is None:
            raise _missing(credential, "and no vault is named by MUSTER_VAULT_ADDRESS")
        try:
            return await self._vault.read(credential.secret)
        except Fault as fault:
            told = _missing(credential, fault.message).message
            raise type(fault)(told, code="CredentialUnreadable") from None


def _variable(credential: Credential, name: str) -> str:
    found = os.environ.get(name)
    if not found:
        raise _missing(credential, "which the launcher's environment does not have")
    return found


def _file(credential: Credential, path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8") as file:
            found = file.read(LONGEST).rstrip("\r\n")
    except OSError as error:
        raise _missing(credential, f"which can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _missing(credential, "which is no text in UTF-8") from None
    if not found:
        raise _missing(credential, "which is empty")
    return found


def _missing(credential: Credential, why: str) -> NotFound:
    """A reference is no secret: who reads this must know what to mend."""
    message = f"The secret of the credential '{credential.name}' is {credential.secret}, {why}."
    return NotFound(message, code="CredentialUnreadable")


def _unreadable(credential: Credential, why: str) -> InvalidRequest:
    message = f"The secret of the credential '{credential.name}' {why}"
    return InvalidRequest(message, code="CredentialUnreadable")
