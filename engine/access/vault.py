"""Reads secrets from HashiCorp Vault's key-value store, version 2; no error contains a secret."""

import asyncio
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from engine.process.bootstrap import VAULT_TOKEN, Bootstrap
from muster.core.errors import InvalidRequest, NotFound, Unavailable
from muster.core.settings import Secret

if TYPE_CHECKING:
    import httpx

REPLY_TIMEOUT = 5.0  # seconds
TRANSIENT_STATUS = frozenset({408, 412, 429})  # and 5xx


class VersionedSecret(msgspec.Struct, frozen=True):
    data: dict[str, msgspec.Raw] | None = None  # None: this version was deleted


class VaultReply(msgspec.Struct, frozen=True):
    data: VersionedSecret = VersionedSecret()


@dataclass(frozen=True)
class Vault:
    address: str
    token: Secret
    namespace: str | None = None

    @classmethod
    def of(cls, bootstrap: Bootstrap) -> "Vault | None":
        """None if the control plane has no vault, or no token for it."""
        address, token = (
            bootstrap.workload_settings.vault_address,
            bootstrap.start.secrets.get(VAULT_TOKEN),
        )
        if not address or not token:
            return None
        return cls(address, Secret(token), bootstrap.workload_settings.vault_namespace)

    async def read(self, reference: str) -> str:
        """The secret of vault:mount/path#key. Messages of Faults continue a sentence about the reference."""
        address, _, key = reference.removeprefix("vault:").partition("#")
        mount, _, path = address.partition("/")
        reply = await self._get(f"v1/{quote(mount, safe='')}/data/{quote(path)}")
        _raise_for(reply.status_code)
        try:
            keys = msgspec.json.decode(reply.content, type=VaultReply).data.data or {}
            secret = msgspec.json.decode(keys[key], type=str)
        except KeyError:
            raise NotFound(f"which has no key '{key}'") from None
        except msgspec.DecodeError:  # its message could contain the secret
            raise InvalidRequest("which is no text in a key-value store of version 2") from None
        if not secret:
            raise NotFound("which is empty")
        return secret

    async def _get(self, path: str) -> "httpx.Response":
        """Without proxies and redirects, which would receive the token."""
        import httpx  # late: only an engine with a vault needs it

        headers = {"X-Vault-Token": self.token.reveal(), "X-Vault-Request": "true"}
        if self.namespace:
            headers["X-Vault-Namespace"] = self.namespace
        context = await asyncio.to_thread(ssl.create_default_context)  # with SSL_CERT_FILE
        try:
            async with (
                asyncio.timeout(REPLY_TIMEOUT),
                httpx.AsyncClient(trust_env=False, verify=context, timeout=REPLY_TIMEOUT) as client,
            ):
                return await client.get(f"{self.address.rstrip('/')}/{path}", headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            why = f"and the vault can't be reached ({type(error).__name__})"
            raise Unavailable(why) from None


def _raise_for(status: int) -> None:
    match status:
        case 200:
            return
        case 403:
            raise InvalidRequest("which the vault's token may not read, or the token has expired")
        case 404:
            raise NotFound("which is not there, or its mount is no key-value store of version 2")
    if status in TRANSIENT_STATUS or status >= 500 or status < 400:
        raise Unavailable(f"and the vault answers {status}")
    raise InvalidRequest(f"and the vault answers {status}")
