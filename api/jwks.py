"""The issuer's public keys: from one pinned address, fetched rarely, kept through an outage."""

import asyncio
from typing import Any

import httpx
import jwt

from muster.core import telemetry
from muster.core.clock import Clock
from muster.core.settings import Settings

log = telemetry.get(__name__)

KEPT = 24 * 3600.0  # seconds that old keys serve while the issuer is away
LARGEST = 1024 * 1024
ALGORITHMS = {"RSA": "RS256", "EC": "ES256"}


class KeySet:
    """`get` never lets a token decide where keys come from, nor how often they are fetched."""

    def __init__(self, settings: Settings, clock: Clock, client: httpx.AsyncClient) -> None:
        self._settings = settings
        self._clock = clock
        self._client = client
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._lock = asyncio.Lock()
        self.generation = 0  # changes with the keys; what was decided with old ones is void

    async def get(self, kid: str) -> jwt.PyJWK | None:
        key = self._keys.get(kid)
        if key is None or self._age() > self._settings.oidc_refresh.total_seconds():
            await self._refresh()
            key = self._keys.get(kid)
        return key

    def _age(self) -> float:
        return self._clock.monotonic() - self._fetched_at

    async def _refresh(self) -> None:
        async with self._lock:
            now = self._clock.monotonic()
            if now - self._tried_at < self._settings.oidc_refresh.total_seconds():
                return
            self._tried_at = now
            try:
                self._keys = _usable(await self._fetch())
                self._fetched_at = self._clock.monotonic()
                self.generation += 1
            except (httpx.HTTPError, ValueError, TypeError) as error:
                log.warning("the issuer's keys could not be fetched", why=type(error).__name__)
                if self._age() > KEPT and self._keys:
                    self._keys = {}
                    self.generation += 1

    async def _fetch(self) -> list[Any]:
        url = self._settings.oidc_jwks_url
        if url is None:
            issuer = (self._settings.oidc_issuer or "").rstrip("/")
            configuration = await self._json(f"{issuer}/.well-known/openid-configuration")
            url = configuration.get("jwks_uri")
        if not isinstance(url, str):
            raise TypeError("no jwks_uri")
        keys = (await self._json(url)).get("keys")
        if not isinstance(keys, list):
            raise TypeError("no keys")
        return keys

    async def _json(self, url: str) -> dict[str, Any]:
        response = await self._client.get(url, follow_redirects=False, timeout=5)
        response.raise_for_status()
        if len(response.content) > LARGEST:
            raise ValueError("too large")
        value = response.json()
        if not isinstance(value, dict):
            raise TypeError("not an object")
        return value


def _usable(keys: list[Any]) -> dict[str, jwt.PyJWK]:
    """Signing keys of the two kinds that we accept; others are passed over."""
    usable: dict[str, jwt.PyJWK] = {}
    for raw in keys:
        if not isinstance(raw, dict) or raw.get("use", "sig") != "sig":
            continue
        kid, algorithm = raw.get("kid"), ALGORITHMS.get(str(raw.get("kty")))
        if not isinstance(kid, str) or algorithm is None:
            continue
        try:
            usable[kid] = jwt.PyJWK(raw, algorithm=algorithm)
        except jwt.PyJWKError:
            continue
    return usable
