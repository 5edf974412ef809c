"""How a user's server is reached: the wire form of an endpoint, its checks, its TLS context."""

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec

from muster.core import egress
from muster.core.egress import Rules, check_host_syntax
from muster.core.errors import FieldError, InvalidRequest

MOST_HOSTS = 32
LONGEST_PEM = 128 * 1024
SSL_MODES = ("verify-full", "require", "disable")
POOLING = ("none", "session", "transaction")
SESSION_ATTRS = ("any", "read-write", "read-only", "prefer-standby", "primary", "standby")


class Endpoint(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    host: str | None = None
    hosts: tuple[str, ...] = ()  # instead of host: tried in order
    port: int = 5432
    ssl_mode: str = "verify-full"
    ca_certificate: str | None = None  # PEM; unset = the system's
    client_certificate: str | None = None  # PEM
    client_key: str | None = None  # PEM, secret
    maintenance_database: str = "postgres"
    pooling: str = "none"
    direct_host: str | None = None  # past the pooler; HOST:PORT where that differs too
    target_session_attrs: str = "any"

    @property
    def names(self) -> tuple[str, ...]:
        return self.hosts or ((self.host,) if self.host else ())

    def direct(self) -> "Endpoint":
        """The server itself where a pooler stands before it."""
        if not self.direct_host:
            return self
        host, port = _apart(self.direct_host, self.port)
        return msgspec.structs.replace(self, host=host, port=port, hosts=(), pooling="none")

    def __repr__(self) -> str:
        return f"Endpoint({','.join(self.names)}:{self.port}, {self.ssl_mode})"


def check_endpoint(
    endpoint: Endpoint, rules: Rules | None = None, *, target: str = "properties.endpoint"
) -> list[FieldError]:
    """Pure; names are not resolved here."""
    if errors := _sizes(endpoint, target):
        return errors
    if bool(endpoint.host) == bool(endpoint.hosts):
        message = "Give either host or hosts."
        errors.append(FieldError(f"{target}.host", message, egress.CODE))
    for host in endpoint.names:
        found = check_host_syntax(host, endpoint.port, rules, target=target)
        errors += [error for error in found if error not in errors]
    if endpoint.direct_host:
        found = check_host_syntax(*_apart(endpoint.direct_host, endpoint.port), rules)
        errors += [replace(error, target=f"{target}.directHost") for error in found]
    for field, value, known in (
        ("sslMode", endpoint.ssl_mode, SSL_MODES),
        ("pooling", endpoint.pooling, POOLING),
        ("targetSessionAttrs", endpoint.target_session_attrs, SESSION_ATTRS),
    ):
        if value not in known:
            message = f"'{value[:50]}' is not one of {', '.join(known)}."
            errors.append(FieldError(f"{target}.{field}", message))
    if (endpoint.client_certificate is None) != (endpoint.client_key is None):
        message = "clientCertificate and clientKey go together."
        errors.append(FieldError(f"{target}.clientCertificate", message))
    elif endpoint.ssl_mode in SSL_MODES:
        try:
            tls_context(endpoint)
        except InvalidRequest as fault:
            errors.append(FieldError(f"{target}.{fault.target}", fault.message))
    return errors


def _sizes(endpoint: Endpoint, target: str) -> list[FieldError]:
    """First of all, since what follows costs by size."""
    if len(endpoint.hosts) > MOST_HOSTS:
        message = f"At most {MOST_HOSTS} hosts."
        return [FieldError(f"{target}.hosts", message, egress.CODE)]
    texts = {
        "caCertificate": endpoint.ca_certificate,
        "clientCertificate": endpoint.client_certificate,
        "clientKey": endpoint.client_key,
    }
    return [
        FieldError(f"{target}.{field}", f"At most {LONGEST_PEM} characters.")
        for field, text in texts.items()
        if text is not None and len(text) > LONGEST_PEM
    ]


def _apart(direct_host: str, port: int) -> tuple[str, int]:
    """A port of its own, if it says one."""
    host, colon, own = direct_host.rpartition(":")
    if not colon or not own.isdecimal() or (":" in host and not host.endswith("]")):
        return direct_host, port
    return host.removeprefix("[").removesuffix("]"), int(own[:6])


def tls_context(endpoint: Endpoint) -> ssl.SSLContext | None:
    """None for `disable`. What holds a private key is made anew and not kept."""
    if endpoint.ssl_mode == "disable":
        return None
    if endpoint.client_certificate is None or endpoint.client_key is None:
        return _trust(endpoint.ssl_mode, endpoint.ca_certificate)
    context = _trust.__wrapped__(endpoint.ssl_mode, endpoint.ca_certificate)
    with _in_memory(endpoint.client_certificate) as chain, _in_memory(endpoint.client_key) as key:
        try:
            # A password that is asked for must not be read from a terminal.
            context.load_cert_chain(chain, key, password=lambda: "")
        except (ssl.SSLError, OSError, ValueError):
            raise InvalidRequest(
                "The client certificate and key are no matching pair in PEM form.",
                code="TargetTlsError",
                target="clientCertificate",
            ) from None
    return context


@lru_cache(maxsize=64)
def _trust(ssl_mode: str, ca_certificate: str | None) -> ssl.SSLContext:
    """TLS 1.2 or newer; `require` encrypts and believes anybody, all else verifies the name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["postgresql"])
    if ssl_mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_certificate is None:
        context.load_default_certs()
    if ca_certificate is not None:
        try:
            context.load_verify_locations(cadata=ca_certificate)
        except (ssl.SSLError, ValueError):
            raise InvalidRequest(
                "The CA certificate is not in PEM form.",
                code="TargetTlsError",
                target="caCertificate",
            ) from None
    return context


@contextlib.contextmanager
def _in_memory(text: str) -> Iterator[Path]:
    """OpenSSL reads keys from files only; this one has no disk behind it."""
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, text.encode())
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
