"""What can be said about a server, when it is added and later."""

import argparse
from pathlib import Path
from typing import Any

from muster.cli import inputs, updates
from muster.cli.arguments import Parser, count
from muster.cli.database import DELETION_POLICY
from muster.cli.updates import LABELS, TAGS, Document, Setting, setting, switch

ENDPOINT = "properties.endpoint"
PASSWORD = "administratorLoginPassword"  # noqa: S105 - a field name
MODES = ("verify-full", "require", "disable")
METHODS = ("scram-sha-256", "md5", "password")
ATTRIBUTES = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")


def _file(option: str, name: str, about: str) -> Setting:
    return setting(
        option, f"{ENDPOINT}.{name}", read=inputs.text, type=Path, metavar="FILE", help=about
    )


def _hosts(text: str) -> list[str]:
    names = [each.strip() for each in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"'{text}' is not HOST,HOST,…")
    return names


def _rate(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no number") from None


REACHED = (  # a registered server; an embedded one has none of them
    setting(
        "--host",
        f"{ENDPOINT}.host",
        reset=False,
        help="host name or address; without it Muster creates an embedded cluster",
    ),
    setting(
        "--hosts",
        f"{ENDPOINT}.hosts",
        reset=False,
        type=_hosts,
        metavar="HOST,…",
        help="instead of --host: tried in this order",
    ),
    setting("--port", f"{ENDPOINT}.port", type=count, help="default: 5432"),
    setting("--ssl-mode", f"{ENDPOINT}.sslMode", choices=MODES, help="default: verify-full"),
    setting(
        "--authentication",
        f"{ENDPOINT}.authentication",
        choices=METHODS,
        help="default: scram-sha-256; the others need Owner",
    ),
    _file("--ca-file", "caCertificate", "PEM of the CA that signed its certificate"),
    _file("--client-certificate-file", "clientCertificate", "PEM of the client certificate"),
    _file("--client-key-file", "clientKey", "PEM of the key of the client certificate"),
    setting(
        "--maintenance-database",
        f"{ENDPOINT}.maintenanceDatabase",
        metavar="NAME",
        help="default: postgres",
    ),
    setting("--pooling", f"{ENDPOINT}.pooling", choices=("none", "session", "transaction")),
    setting(
        "--direct-host",
        f"{ENDPOINT}.directHost",
        metavar="HOST[:PORT]",
        help="host for connections that bypass the pooler",
    ),
    setting(
        "--session-attributes",
        f"{ENDPOINT}.targetSessionAttrs",
        choices=ATTRIBUTES,
        help="which of --hosts is taken; default: any",
    ),
)
LIMITS = (
    setting(
        "--max-connections",
        "properties.maxConnections",
        type=count,
        metavar="N",
        help="for all sessions of Muster on it",
    ),
    setting(
        "--connections-per-second",
        "properties.connectionsPerSecond",
        type=_rate,
        metavar="N",
        help="new connections; 0.1 to 1000",
    ),
    setting(
        "--slots-per-database",
        "properties.slotsPerDatabase",
        type=count,
        metavar="N",
        help="targets that run at once in one database",
    ),
)
ADDED = (
    *REACHED,
    *LIMITS,
    setting(
        "--job-credential",
        "properties.jobCredential",
        metavar="CREDENTIAL",
        help="credential that jobs use",
    ),
    setting(
        "--admin",
        "properties.administratorLogin",
        metavar="LOGIN",
        help="login that creates databases; jobs never use it",
    ),
    DELETION_POLICY,
    switch("--disable", "properties.disabled", "targets on it wait", to=True),
    LABELS,
    TAGS,
)
SETTINGS = (
    *ADDED,
    switch("--enable", "properties.disabled", "targets on it run again", to=False),
)


def add_password(one: Parser, *, update: bool) -> None:
    one.add_argument("--admin-password-file", type=Path, metavar="FILE", help="- is stdin")
    if update:
        about = "ask for the administrator's password, or read it from stdin"
        one.add_argument("--new-admin-password", action="store_true", help=about)


def password(options: argparse.Namespace, login: str | None, *, is_new: bool) -> str:
    prompt = f"Password of {login or 'the administrator'}"
    return inputs.password(options.admin_password_file, prompt, is_new=is_new).reveal()


def is_registered(document: Document) -> bool:
    endpoint: dict[str, Any] = document.get("properties", {}).get("endpoint") or {}
    return bool(endpoint.get("host") or endpoint.get("hosts"))


def changes(options: argparse.Namespace) -> Document:
    """As a merge patch."""
    secret: Document = {}
    if options.admin_password_file or options.new_admin_password:
        secret = {"properties": {PASSWORD: password(options, options.admin, is_new=False)}}
    patch = updates.changes(options, SETTINGS, secret, ["--new-admin-password"])
    endpoint = patch.get("properties", {}).get("endpoint") or {}
    if "host" in endpoint or "hosts" in endpoint:  # the one takes the place of the other
        endpoint.setdefault("hosts" if "host" in endpoint else "host", None)
    return patch
