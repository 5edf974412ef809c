"""An OIDC issuer for tests: keys, tokens good and bad, and a JWKS endpoint that counts its callers."""

import base64
import functools
import json
import time
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER = "https://issuer.test/v2.0"
JWKS = "https://issuer.test/keys"
AUDIENCE = "https://management.azure.com/"
TENANT = "00000000-0000-0000-0000-000000000001"


@functools.cache
def _keys() -> dict[str, Any]:
    """Once per process: making them is slow."""
    return {
        "rsa-1": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ec-1": ec.generate_private_key(ec.SECP256R1()),
    }


class Issuer:
    def __init__(self) -> None:
        self.keys = dict(_keys())
        self.fetched: list[str] = []
        self.down = False

    def jwks(self) -> dict[str, Any]:
        return {"keys": [self._public(kid) for kid in self.keys]}

    def _public(self, kid: str) -> dict[str, Any]:
        key = self.keys[kid]
        kind = (
            jwt.algorithms.RSAAlgorithm
            if isinstance(key, rsa.RSAPrivateKey)
            else jwt.algorithms.ECAlgorithm
        )
        return {**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "use": "sig"}

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.fetched.append(str(request.url))
        if self.down:
            raise httpx.ConnectError("down")
        if request.url.path.endswith("openid-configuration"):
            return httpx.Response(200, json={"issuer": ISSUER, "jwks_uri": JWKS})
        return httpx.Response(200, json=self.jwks())

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.MockTransport(self.answer))

    def claims(self, oid: str = "someone", **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "exp": now + 3600,
            "nbf": now - 10,
            "tid": TENANT,
            "oid": oid,
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self,
        oid: str = "someone",
        *,
        kid: str = "rsa-1",
        headers: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        key = self.keys[kid]
        algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        return jwt.encode(
            self.claims(oid, **changes), key, algorithm, headers={"kid": kid, **(headers or {})}
        )

    def public_pem(self, kid: str = "rsa-1") -> bytes:
        return (
            self.keys[kid]
            .public_key()
            .public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    def forged(self, alg: str, secret: bytes = b"") -> str:
        """A token whose header says what the forger wants; HS256 with the public key, or none."""
        import hashlib
        import hmac

        head = _encode({"alg": alg, "kid": "rsa-1", "typ": "JWT"})
        text = f"{head}.{_encode(self.claims())}"
        signature = hmac.digest(secret, text.encode(), hashlib.sha256) if secret else b""
        return f"{text}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _encode(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
