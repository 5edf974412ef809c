"""Reads secrets from HashiCorp Vault's key-value store, version 2; what it refuses is told without the secret."""

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

LIMIT = 5.0  # seconds for an answer
PASSING = frozenset({408, 412, 429})  # and what is wrong with Vault itself


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
        """None when the control plane names no vault or gives no token."""
        address, token = bootstrap.given.vault_address, bootstrap.start.secrets.get(VAULT_TOKEN)
        if not address or not token:
            return None
        return cls(address, Secret(token), bootstrap.given.vault_namespace)

    async def read(self, reference: str) -> str:
        """Of vault:mount/path#key. Faults go on where a sentence says what the reference is."""
        where, _, key = reference.removeprefix("vault:").partition("#")
        mount, _, path = where.partition("/")
        answer = await self._get(f"v1/{quote(mount, safe='')}/data/{quote(path)}")
        _refuse(answer.status_code)
        try:
            found = msgspec.json.decode(answer.content, type=VaultReply).data.data or {}
            secret = msgspec.json.decode(found[key], type=str)
        except KeyError:
            raise NotFound(f"which has no key '{key}'") from None
        except msgspec.DecodeError:  # its words could hold the secret
            raise InvalidRequest("which is no text in a key-value store of version 2") from None
        if not secret:
            raise NotFound("which is empty")
        return secret

    async def _get(self, path: str) -> "httpx.Response":
        """Neither a proxy nor a redirection gets to see the token."""
        import httpx  # late: an engine without a vault needs none of it

        headers = {"X-Vault-Token": self.token.reveal(), "X-Vault-Request": "true"}
        if self.namespace:
            headers["X-Vault-Namespace"] = self.namespace
        trusted = await asyncio.to_thread(ssl.create_default_context)  # with SSL_CERT_FILE
        try:
            async with (
                asyncio.timeout(LIMIT),
                httpx.AsyncClient(trust_env=False, verify=trusted, timeout=LIMIT) as client,
            ):
                return await client.get(f"{self.address.rstrip('/')}/{path}", headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            why = f"and the vault can't be reached ({type(error).__name__})"
            raise Unavailable(why) from None


def _refuse(status: int) -> None:
    match status:
        case 200:
            return
        case 403:
            raise InvalidRequest("which the vault's token may not read, or the token has expired")
        case 404:
            raise NotFound("which is not there, or its mount is no key-value store of version 2")
    if status in PASSING or status >= 500 or status < 400:
        raise Unavailable(f"and the vault answers {status}")
    raise InvalidRequest(f"and the vault answers {status}")
