"""How a user's server is reached: the wire form of an endpoint, its checks, its TLS context."""

import contextlib
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import msgspec

from muster.core import egress, weak_login
from muster.core.egress import Addresses, Rules, check_host_syntax
from muster.core.errors import FieldError, InvalidRequest
from muster.core.settings import Settings, SettingsError

CERTIFICATE = re.compile(
    r"-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----", re.ASCII
)
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
    ca_certificate: str | None = None  # PEM; unset = the operator's or the system's
    client_certificate: str | None = None  # PEM
    client_key: str | None = None  # PEM, secret
    maintenance_database: str = "postgres"
    pooling: str = "none"
    direct_host: str | None = (
        None  # host for connections that bypass the pooler; HOST:PORT where that differs too
    )
    target_session_attrs: str = "any"
    authentication: str = weak_login.SCRAM

    @property
    def names(self) -> tuple[str, ...]:
        return self.hosts or ((self.host,) if self.host else ())

    @property
    def identity(self) -> dict[str, object]:
        """By the fields' names: with another value of any of them it may be another server that answers."""
        return {
            "host": self.names,
            "port": self.port,
            "directHost": self.direct_host,
            "sslMode": self.ssl_mode,
            "caCertificate": self.ca_certificate,
        }

    def login_method(self, host: str, addresses: Addresses) -> str:
        """A server that names a CA of its own may be another one than that which was allowed a weak login there."""
        weak = addresses.authentication(host, self.port, self.ssl_mode)
        return weak if weak and self.ca_certificate is None else self.authentication

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
        problems = check_host_syntax(host, endpoint.port, rules, target=target)
        errors += [error for error in problems if error not in errors]
    if endpoint.direct_host:
        problems = check_host_syntax(*_apart(endpoint.direct_host, endpoint.port), rules)
        errors += [replace(error, target=f"{target}.directHost") for error in problems]
    for field, value, choices in (
        ("sslMode", endpoint.ssl_mode, SSL_MODES),
        ("pooling", endpoint.pooling, POOLING),
        ("targetSessionAttrs", endpoint.target_session_attrs, SESSION_ATTRS),
        ("authentication", endpoint.authentication, weak_login.METHODS),
    ):
        if value not in choices:
            message = f"'{value[:50]}' is not one of {', '.join(choices)}."
            errors.append(FieldError(f"{target}.{field}", message))
    errors += _methods(endpoint, target)
    if (endpoint.client_certificate is None) != (endpoint.client_key is None):
        message = "clientCertificate and clientKey go together."
        errors.append(FieldError(f"{target}.clientCertificate", message))
    elif endpoint.ssl_mode in SSL_MODES:
        try:
            tls_context(endpoint)
        except InvalidRequest as fault:
            errors.append(FieldError(f"{target}.{fault.target}", fault.message))
    return errors


def _methods(endpoint: Endpoint, target: str) -> list[FieldError]:
    if endpoint.authentication not in weak_login.WEAK or endpoint.ca_certificate is None:
        return []
    message = (
        f"authentication {endpoint.authentication} and caCertificate don't go together: the one who names the CA "
        "could read the passwords. Leave out caCertificate (the system's CAs or MUSTER_TARGET_CA_FILE then "
        f"verify the server), or set authentication to {weak_login.SCRAM}."
    )
    return [FieldError(f"{target}.authentication", message)]


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


def operators_ca(settings: Settings) -> str | None:
    """What MUSTER_TARGET_CA_FILE holds; SettingsError when that is no CA."""
    path = settings.target_ca_file
    if path is None:
        return None
    try:
        # Bundles have comments between the certificates, in any encoding.
        text = "\n".join(CERTIFICATE.findall(path.read_text(encoding="utf-8", errors="replace")))
        _trust("verify-full", text)
    except OSError as error:
        raise SettingsError(f"MUSTER_TARGET_CA_FILE can't be read: {error.strerror}") from None
    except InvalidRequest:
        raise SettingsError("MUSTER_TARGET_CA_FILE holds no certificates in PEM form") from None
    return text


def tls_context(endpoint: Endpoint, otherwise: str | None = None) -> ssl.SSLContext | None:
    """None for `disable`. A context with a private key is created each time and not kept.

    `otherwise` is the CA of servers that name none, in PEM form; None: the system's.
    """
    authority = endpoint.ca_certificate or otherwise
    if endpoint.ssl_mode == "disable":
        return None
    if endpoint.client_certificate is None or endpoint.client_key is None:
        return _trust(endpoint.ssl_mode, authority)
    context = _trust.__wrapped__(endpoint.ssl_mode, authority)
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
    """OpenSSL reads keys from files only; this one is in memory."""
    descriptor = os.memfd_create("pem")
    try:
        os.write(descriptor, text.encode())
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
