"""Authentication: a workload by its start token, a launcher by a signed one; each is valid only for its owner."""

import base64
import binascii
import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from muster.core.errors import Unauthenticated
from muster.core.settings import Settings

WORKLOAD, LAUNCHER = "w1", "l1"


class Launcher(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher's token says: it acts for its own name, inside its own group."""

    name: str
    group: str
    until: float  # seconds since 1970


def start_token(id: UUID) -> tuple[str, bytes]:
    """A fresh token and the digest that the row keeps; it lives as long as its workload."""
    token = f"{WORKLOAD}.{id.hex}.{secrets.token_urlsafe(32)}"
    return token, digest(token)


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def fits(token: str, kept: bytes | None) -> bool:
    return kept is not None and hmac.compare_digest(digest(token), kept)


def workload_of(token: str) -> UUID | None:
    """Whom it claims to be; None when it is no start token at all."""
    form, _, rest = token.partition(".")
    try:
        return UUID(hex=rest.partition(".")[0]) if form == WORKLOAD else None
    except ValueError:
        return None


class LauncherTokens:
    """Signed under a key made from the envelope keys, so that any process of ours can check it."""

    def __init__(self, settings: Settings) -> None:
        keys = settings.keys.reveal().split(",") if settings.keys else []
        self._keys = [hashlib.sha256(b"launcher token " + each.encode()).digest() for each in keys]

    def make(self, *, name: str, group: str, now: datetime, lifetime: timedelta) -> str:
        until = (now + lifetime).timestamp()
        claims = _text(msgspec.json.encode(Launcher(name=name, group=group, until=until)))
        return f"{LAUNCHER}.{claims}.{_text(_mac(self._keys[0], claims))}"

    def check(self, token: str, now: datetime) -> Launcher:
        """Raises Unauthenticated for what we did not sign, and for what is no longer true."""
        form, _, rest = token.partition(".")
        claims, _, mac = rest.partition(".")
        if form == LAUNCHER and any(
            hmac.compare_digest(mac.encode(), _text(_mac(key, claims)).encode())
            for key in self._keys
        ):
            try:
                launcher = msgspec.json.decode(base64.urlsafe_b64decode(claims), type=Launcher)
            except (binascii.Error, msgspec.DecodeError):
                raise Unauthenticated("The token can't be read.") from None
            if launcher.until > now.timestamp():
                return launcher
            raise Unauthenticated("The token has expired.", code="ExpiredAuthenticationToken")
        raise Unauthenticated("The token was not issued here.")


def _mac(key: bytes, claims: str) -> bytes:
    return hmac.digest(key, claims.encode(), "sha256")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()
