"""Short-lived bearer tokens: good for one command of one account, in one class, with one body."""

import hashlib
from datetime import timedelta
from uuid import UUID

import jwt

from muster.core.clock import Clock
from muster.core.errors import Forbidden, Unauthenticated, Unavailable
from muster.core.secrets import Keyring
from nodeagent.protocol import Class

LABEL = "muster/nodeagent/token/v1"
ALGORITHM = "HS256"
LIFE = timedelta(seconds=60)
SKEW = timedelta(seconds=10)  # between the clocks of two machines
CLAIMS = ("account", "command", "kind", "body", "iat", "exp")


class Tokens:
    def __init__(self, keyring: Keyring, clock: Clock) -> None:
        self._keyring = keyring
        self._clock = clock

    def sign(self, account_uid: UUID, command_id: UUID, cls: Class, body: bytes) -> str:
        now = self._clock.now()
        claims = {
            "account": str(account_uid),
            "command": str(command_id),
            "kind": cls.value,
            "body": body_digest(body),
            "iat": int(now.timestamp()),
            "exp": int((now + LIFE).timestamp()),
        }
        key_id = self._keyring.current
        key = self._keyring.derive(LABEL, key_id)
        return jwt.encode(claims, key, ALGORITHM, headers={"kid": key_id})

    def read(self, token: str) -> dict[str, object]:
        """What it says, if it is ours and of now; otherwise Unauthenticated."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid", "")
            key = self._keyring.derive(LABEL, key_id)
            # Time is judged below, by our own clock.
            options = {"require": list(CLAIMS), "verify_exp": False, "verify_iat": False}
            claims: dict[str, object] = jwt.decode(
                token,
                key,
                [ALGORITHM],
                options=options,  # type: ignore[arg-type]
            )
            issued, ends = float(str(claims["iat"])), float(str(claims["exp"]))
        except (jwt.InvalidTokenError, Unavailable, ValueError):
            raise Unauthenticated("The token is not valid.", code="InvalidToken") from None
        now, skew = self._clock.now().timestamp(), SKEW.total_seconds()
        if ends - issued > LIFE.total_seconds() or issued > now + skew or now > ends:
            raise Unauthenticated("The token has expired.", code="ExpiredToken")
        return claims


def demand(claims: dict[str, object], **expected: object) -> None:
    """Forbidden when the token is ours, but for something else."""
    for name, value in expected.items():
        if claims[name] != str(value):
            raise Forbidden(f"The token is for another {name}.", code="TokenNotForThis")


def body_digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
