"""`{value, nextLink}`: pages behind opaque tokens that fit only the list they were made for."""

import base64
import binascii
import hashlib
import hmac
from urllib.parse import quote

from api.endpoint import SKIP_TOKEN, TOP, Endpoint
from api.request_context import Exchange
from muster.core.errors import InvalidRequest
from muster.core.settings import Settings

MOST = 1000
DEFAULT = 100
TOKEN = SKIP_TOKEN.lower()
MAC = 16


class Paging:
    def __init__(self, settings: Settings) -> None:
        """Every process of an installation has the same secrets, so any of them reads a token."""
        secrets = settings.keys.reveal().split(",") if settings.keys else []
        secrets.append(settings.database_url.reveal())
        self._keys = [hashlib.sha256(b"skip token " + each.encode()).digest() for each in secrets]

    def token(self, exchange: Exchange, cursor: str) -> str:
        raw = self._mac(self._keys[0], exchange, cursor.encode()) + cursor.encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def after(self, exchange: Exchange) -> str | None:
        token = exchange.query.get(TOKEN)
        if token is None:
            return None
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            cursor = raw[MAC:]
            if any(
                hmac.compare_digest(raw[:MAC], self._mac(key, exchange, cursor))
                for key in self._keys
            ):
                return cursor.decode()
        except (binascii.Error, ValueError):
            pass
        raise InvalidRequest(
            "The $skipToken does not belong to this list.",
            code="InvalidSkipToken",
            target="$skipToken",
        )

    def next_link(self, exchange: Exchange, base: str, cursor: str) -> str:
        """The request again, with the token of the following page."""
        asked = exchange.scope["query_string"].split(b"&")
        kept = [part.decode("latin-1") for part in asked if part and not _is_token(part)]
        kept.append(f"%24skipToken={self.token(exchange, cursor)}")
        return f"{base}{quote(exchange.raw_path, safe='/%')}?{'&'.join(kept)}"

    @staticmethod
    def _mac(key: bytes, exchange: Exchange, cursor: bytes) -> bytes:
        endpoint = exchange.endpoint
        assert endpoint is not None
        filters = sorted(
            f"{name}={value}"
            for name, value in exchange.query.items()
            if name not in {"api-version", TOKEN, TOP}
        )
        bound = "\n".join([endpoint.operation_id, exchange.id.key, *filters]).encode()
        return hmac.digest(key, bound + b"\0" + cursor, "sha256")[:MAC]


def top(exchange: Exchange) -> int:
    """The size of a page; where the list has a $top of its own, that one is the use case's."""
    text = exchange.query.get(TOP)
    if text is None or (exchange.endpoint and _has_top(exchange.endpoint)):
        return DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST):
        raise InvalidRequest(
            f"$top must be a number from 1 to {MOST}.", code="InvalidParameterValue", target="$top"
        )
    return int(text)


def _has_top(endpoint: Endpoint) -> bool:
    return any(each.name == TOP for each in endpoint.query)


def _is_token(part: bytes) -> bool:
    name = part.partition(b"=")[0].lower().replace(b"%24", b"$")
    return name == TOKEN.encode()
