"""`{value, nextLink}`: pages with encrypted tokens that are valid only for the list and the caller they were made for."""

import base64
import binascii
import contextlib
import hashlib
import secrets
from urllib.parse import quote

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from api.endpoint import SKIP_TOKEN, TOP, Endpoint
from api.request_context import RequestContext
from muster.core.errors import InvalidRequest
from muster.core.settings import Settings

MOST = 1000
DEFAULT = 100
TOKEN = SKIP_TOKEN.lower()
NONCE = 12  # bytes


class Paging:
    def __init__(self, settings: Settings) -> None:
        """Every process of an installation has the same secrets, so any of them reads a token."""
        keys = settings.keys.reveal().split(",") if settings.keys else []
        keys.append(settings.database_url.reveal())
        self._ciphers = [
            AESGCM(hashlib.sha256(b"skip token " + each.encode()).digest()) for each in keys
        ]

    def token(self, context: RequestContext, cursor: str) -> str:
        """Encrypted: a cursor may hold the name of something that the caller may not read."""
        nonce = secrets.token_bytes(NONCE)
        raw = nonce + self._ciphers[0].encrypt(nonce, cursor.encode(), _bound(context))
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    def after(self, context: RequestContext) -> str | None:
        token = context.query.get(TOKEN)
        if token is None:
            return None
        bound = _bound(context)
        with contextlib.suppress(binascii.Error, ValueError):
            raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
            for cipher in self._ciphers:
                with contextlib.suppress(InvalidTag):
                    return cipher.decrypt(raw[:NONCE], raw[NONCE:], bound).decode()
        raise InvalidRequest(
            "The $skipToken does not belong to this list.",
            code="InvalidSkipToken",
            target="$skipToken",
        )

    def next_link(self, context: RequestContext, base: str, cursor: str) -> str:
        """The request again, with the token of the following page."""
        parameters = context.scope["query_string"].split(b"&")
        kept = [part.decode("latin-1") for part in parameters if part and not _is_token(part)]
        kept.append(f"%24skipToken={self.token(context, cursor)}")
        return f"{base}{quote(context.raw_path, safe='/%')}?{'&'.join(kept)}"


def _bound(context: RequestContext) -> bytes:
    """What a token is good for: one list with its filters, asked for by one principal."""
    endpoint, who = context.endpoint, context.principal
    assert endpoint is not None
    assert who is not None
    filters = sorted(
        f"{name}={value}"
        for name, value in (context.query | context.names).items()
        if name not in {"api-version", TOKEN, TOP}
    )
    caller = f"{who.tenant_id}/{who.id}"
    return "\n".join([caller, endpoint.operation_id, context.id.key, *filters]).encode()


def top(context: RequestContext) -> int:
    """The size of a page; where the list has a $top of its own, that one is the use case's."""
    text = context.query.get(TOP)
    if text is None or (context.endpoint and _has_top(context.endpoint)):
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
