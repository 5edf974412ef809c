"""Authentication: a bearer token that is the local one, a service token, or a JWT of the issuer."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import jwt

from api.jwks import KeySet
from api.request_context import RequestContext
from muster.core.clock import Clock
from muster.core.errors import Unauthenticated
from muster.core.settings import Settings
from workflows.model.resource import Principal, PrincipalType

SERVICE_PREFIX = "mst_"
ALGORITHMS = ["RS256", "ES256"]
LEEWAY = 60  # seconds by which clocks may differ
LONGEST = 12 * 1024
MOST_KNOWN = 10_000
TYPES = {None, "jwt", "at+jwt"}

FindToken = Callable[[str], Awaitable[Principal | None]]


class Authenticator:
    def __init__(
        self, settings: Settings, clock: Clock, keys: KeySet | None, find_token: FindToken
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._keys = keys
        self._find_token = find_token
        self._local = settings.local_token.reveal().encode() if settings.local_token else None
        self._owner = Principal(
            id="local",
            tenant_id=settings.tenant_id,
            name="local",
            token_id=_token_id(hashlib.sha256(self._local or b"").digest()),
            owner=True,
        )
        self._tenants = frozenset(settings.oidc_tenants or (settings.tenant_id,))
        self._known: OrderedDict[bytes, tuple[Principal, float, int]] = OrderedDict()

    async def principal(self, context: RequestContext) -> Principal:
        context.refuse_repeated()
        header = context.headers.get(b"authorization")
        if header is None:
            raise Unauthenticated("Authentication failed. The 'Authorization' header is missing.")
        scheme, _, token = header.partition(b" ")
        token = token.strip()
        if scheme.lower() != b"bearer" or not token:
            raise Unauthenticated(
                "Authentication failed. The 'Authorization' header must be 'Bearer <token>'."
            )
        if self._local is not None and hmac.compare_digest(token, self._local):
            return self._owner
        if len(token) > LONGEST or not token.isascii():
            raise _invalid("it is malformed")
        digest = hashlib.sha256(token).digest()
        text = token.decode()
        if text.startswith(SERVICE_PREFIX):
            return await self._service(digest)
        cached = self._known.get(digest)
        if cached is not None and self._still(cached):
            return cached[0]
        return await self._jwt(text, digest)

    async def _service(self, digest: bytes) -> Principal:
        """Asks at each request, so that a deleted token is refused at once by every process."""
        row = await self._find_token(digest.hex())
        if row is None:
            raise _invalid("the service token is unknown, expired or revoked")
        return row

    async def _jwt(self, token: str, digest: bytes) -> Principal:
        if self._keys is None:
            raise _invalid("it is not a token of this installation")
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise _invalid("it is malformed") from None
        kid, kind = header.get("kid"), header.get("typ")
        if header.get("alg") not in ALGORITHMS or not isinstance(kid, str):
            raise _invalid("its algorithm is not allowed or it names no key")
        if not isinstance(kind, str | None) or (kind and kind.lower()) not in TYPES:
            raise _invalid("its type is not allowed")
        key = await self._keys.get(kid)
        if key is None or key.algorithm_name != header["alg"]:
            raise _invalid("it is not signed by a key of the issuer")
        claims = self._verified(token, key)
        principal = self._principal_of(claims, digest)
        left = claims["exp"] + LEEWAY - self._clock.now().timestamp()
        self._remember(digest, principal, min(left, self._settings.oidc_refresh.total_seconds()))
        return principal

    def _verified(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._settings.oidc_audiences,
                issuer=self._settings.oidc_issuer,
                leeway=LEEWAY,
                options={"require": ["iss", "aud", "exp", "nbf"]},
            )
        except jwt.ExpiredSignatureError:
            raise Unauthenticated(
                "The access token has expired.", code="ExpiredAuthenticationToken"
            ) from None
        except jwt.InvalidAudienceError:
            raise Unauthenticated(
                "The access token was made for another audience.",
                code="InvalidAuthenticationTokenAudience",
            ) from None
        except jwt.InvalidIssuerError:
            raise _wrong_tenant() from None
        except jwt.PyJWTError:
            raise _invalid("its signature or its claims are not valid") from None
        if claims.get("tid") not in self._tenants:
            raise _wrong_tenant()
        return claims

    def _principal_of(self, claims: dict[str, Any], digest: bytes) -> Principal:
        subject = claims.get("oid") or claims.get("sub")
        if not isinstance(subject, str) or not 1 <= len(subject) <= 256:
            raise _invalid("it names no principal")
        groups = claims.get(self._settings.oidc_group_claim)
        application = claims.get("idtyp") == "app"
        name = claims.get("upn") or claims.get("preferred_username") or claims.get("appid") or ""
        return Principal(
            id=subject,
            tenant_id=claims["tid"],
            type=PrincipalType.APPLICATION if application else PrincipalType.USER,
            name=str(name)[:256],
            token_id=str(claims.get("uti") or claims.get("jti") or _token_id(digest))[:256],
            groups=tuple(str(g) for g in groups[:1000]) if isinstance(groups, list) else (),
        )

    def _still(self, cached: tuple[Principal, float, int]) -> bool:
        _, until, generation = cached
        return self._clock.monotonic() < until and generation == self._generation()

    def _remember(self, digest: bytes, principal: Principal, seconds: float) -> None:
        until = self._clock.monotonic() + seconds
        self._known[digest] = (principal, until, self._generation())
        self._known.move_to_end(digest)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def _generation(self) -> int:
        return self._keys.generation if self._keys else 0


def _token_id(digest: bytes) -> str:
    """For a token without an id: enough of its digest to tell it from others, too little to guess it."""
    return f"sha256:{digest.hex()[:16]}"


def _invalid(why: str) -> Unauthenticated:
    return Unauthenticated(
        f"The access token is invalid: {why}.", code="InvalidAuthenticationToken"
    )


def _wrong_tenant() -> Unauthenticated:
    return Unauthenticated(
        "The access token is from the wrong issuer or tenant.",
        code="InvalidAuthenticationTokenTenant",
    )
