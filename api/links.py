"""Absolute URLs: from the configured address, or from the host that the client called."""

import ipaddress
import re
import socket
from urllib.parse import urlsplit

from api.request_context import RequestContext
from muster.core.errors import InvalidRequest
from muster.core.settings import Settings

HOST = re.compile(
    r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?)(?::[0-9]{1,5})?\Z"
)


LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Links:
    def __init__(self, settings: Settings) -> None:
        self._public = settings.public_url.rstrip("/") if settings.public_url else None
        allowed = {host.lower() for host in settings.allowed_hosts}
        if self._public:
            allowed.add(urlsplit(self._public).netloc.lower())
        self._configured = bool(allowed)
        self._allowed = frozenset(allowed) or LOOPBACK | {socket.gethostname().lower()}
        self._trusted = tuple(ipaddress.ip_network(each) for each in settings.forwarded_from)

    def check_host(self, context: RequestContext) -> None:
        """Refuses a host that is not ours before anything is done."""
        host = self._host(context).lower()
        if not HOST.match(host):
            raise _unknown_host()
        name = re.sub(r":[0-9]+\Z", "", host)
        if {host, name} & self._allowed:
            return
        if self._configured or not self._vouched(context, name):
            raise _unknown_host()

    def _vouched(self, context: RequestContext, name: str) -> bool:
        """Not configured, but a trusted proxy says it, or it is the address that was connected to."""
        if self._forwarded(context) and context.header(b"x-forwarded-host"):
            return True
        address = (context.scope.get("server") or ("",))[0] or ""
        return name in {address.lower(), f"[{address.lower()}]"}

    def base(self, context: RequestContext) -> str:
        if self._public:
            return self._public
        scheme = context.scope["scheme"]
        if self._forwarded(context):
            forwarded = (context.header(b"x-forwarded-proto") or "").strip().lower()
            scheme = forwarded if forwarded in {"http", "https"} else scheme
        return f"{scheme}://{self._host(context)}"

    def _host(self, context: RequestContext) -> str:
        if self._trusted and self._forwarded(context):
            host = (context.header(b"x-forwarded-host") or "").strip()
            if host:
                return host
        return context.header(b"host") or ""

    def _forwarded(self, context: RequestContext) -> bool:
        """Whether the peer is one whose word about the client counts."""
        if not self._trusted:
            return False
        try:
            address = ipaddress.ip_address(context.address)
        except ValueError:
            return False
        return any(address in network for network in self._trusted)


def _unknown_host() -> InvalidRequest:
    return InvalidRequest(
        "This host is not served here. An operator lists the names in MUSTER_ALLOWED_HOSTS (host names with an "
        "optional :port, separated by commas) or sets MUSTER_PUBLIC_URL, in the environment of the API; both "
        "count after its restart.",
        code="InvalidHostHeader",
    )
