"""What a delivery of a webhook consists of: URL, signature, request and pauses. Pure.

signature = sign(secret, timestamp, body)      "v1=" + hex of HMAC-SHA256(secret, timestamp + "." + body)
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from muster.core.settings import Secret, Settings

FIRST_PAUSE, FACTOR, LONGEST_PAUSE = 10.0, 3.0, 3600.0  # seconds
LONGEST_URL = 2000
URL = re.compile(r"https?://[!-~]+", re.IGNORECASE)  # printable ASCII without spaces
WRONG = (
    "is an http or https URL of at most 2,000 ASCII characters with a host and without user, password"
    " and fragment"
)


@dataclass(frozen=True)
class Receiver:
    """The parts of a URL."""

    tls: bool
    host: str
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """As the header Host has it."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.tls else 80) else f"{name}:{self.port}"


def webhook_settings(settings: Settings) -> Settings:
    """Of the egress rules for webhooks: those for targets, and the port of https."""
    return replace(settings, target_ports=(*settings.target_ports, "443"))


def receiver(url: str) -> Receiver | None:
    """None when the URL can't be used."""
    if len(url) > LONGEST_URL or not URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = parts.hostname
    if not host or "@" in parts.netloc or parts.fragment or port == 0:
        return None
    tls = parts.scheme.lower() == "https"
    path = parts.path or "/"
    return Receiver(
        tls, host, port or (443 if tls else 80), f"{path}?{parts.query}" if parts.query else path
    )


def sign(secret: Secret, timestamp: int, body: bytes) -> str:
    message = str(timestamp).encode() + b"." + body
    return "v1=" + hmac.new(secret.reveal().encode(), message, hashlib.sha256).hexdigest()


def request(to: Receiver, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"POST {to.path} HTTP/1.1", f"Host: {to.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("ascii") + body


def next_pause(attempts: int, most: int) -> float | None:
    """Seconds after so many failed attempts; None: there is no further attempt."""
    if attempts >= most:
        return None
    return min(FIRST_PAUSE * FACTOR ** (attempts - 1), LONGEST_PAUSE)
