"""What a server may be."""

from typing import Any

from muster.core import connect
from muster.core.errors import FieldError
from muster.core.settings import Settings
from workflows.kind import Draft
from workflows.model.resource import Resource
from workflows.validation.common import fixed, identifier, invisible, labels, within

LOGIN = "properties.administratorLogin"
PASSWORD = "properties.administratorLoginPassword"  # noqa: S105 - a field name
RESERVED_LOGINS = {"postgres", "public", "none", "muster", "current_user", "session_user"}


def server(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    new = draft.properties
    was = old.properties if old else {}
    endpoint = new.get("endpoint")
    return [
        *_home(endpoint, old, settings),
        *(_endpoint(endpoint, settings) if endpoint else []),
        *_administrator(draft, was, embedded=endpoint is None),
        *within("properties.maxConnections", new.get("maxConnections"), 1, 10_000),
        *within("properties.connectionsPerSecond", new.get("connectionsPerSecond"), 0.1, 1_000),
        *within("properties.slotsPerDatabase", new.get("slotsPerDatabase"), 1, 1_000),
        *labels("properties.labels", new.get("labels")),
    ]


def _home(endpoint: Any, old: Resource | None, settings: Settings) -> list[FieldError]:
    where = "properties.endpoint"
    if old is not None and (endpoint is None) != (old.properties.get("endpoint") is None):
        return fixed(
            where,
            "other",
            "a cluster of its own" if endpoint else "an endpoint",
            "a registered server and an embedded cluster can't become each other.",
        )
    if endpoint is None and not settings.embedded:
        return [
            FieldError(
                where,
                "An endpoint {host, port} is required: this installation runs no clusters of its own.",
            )
        ]
    return []


def _endpoint(endpoint: dict[str, Any], settings: Settings) -> list[FieldError]:
    errors: list[FieldError] = []
    hosts = endpoint.get("hosts") or []
    port = endpoint.get("port", 5432)
    if bool(endpoint.get("host")) == bool(hosts):
        errors.append(
            FieldError("properties.endpoint", "Exactly one of host and hosts is required.")
        )
    named = [("properties.endpoint.host", endpoint.get("host"))]
    named += [(f"properties.endpoint.hosts[{n}]", host) for n, host in enumerate(hosts)]
    named.append(("properties.endpoint.directHost", endpoint.get("directHost")))
    for where, host in named:
        if host is not None:
            found = connect.check_target(host, port, settings)
            errors += [FieldError(where, e.message, e.code) for e in found]
    if len(hosts) > 16:
        errors.append(FieldError("properties.endpoint.hosts", "At most 16 hosts."))
    for name in ("caCertificate", "clientCertificate"):
        text = endpoint.get(name)
        if text is not None and "-----BEGIN CERTIFICATE-----" not in text:
            errors.append(
                FieldError(f"properties.endpoint.{name}", "Expected a certificate in PEM form.")
            )
    maintenance = endpoint.get("maintenanceDatabase")
    if maintenance and (problem := identifier(maintenance)):
        errors.append(FieldError("properties.endpoint.maintenanceDatabase", problem))
    return errors


def _administrator(draft: Draft, was: dict[str, Any], *, embedded: bool) -> list[FieldError]:
    login = draft.properties.get("administratorLogin")
    given = draft.secrets.get("administratorLoginPassword")
    stored = "administratorLoginPassword" in draft.kept
    errors: list[FieldError] = []
    if embedded and not login:
        errors.append(
            FieldError(LOGIN, "An administrator login is required.", "InvalidParameterValue")
        )
    if login and not (given or stored):
        errors.append(FieldError(PASSWORD, "A password is required with an administrator login."))
    if given and not login:
        errors.append(FieldError(LOGIN, "A login is required with a password."))
    if login:
        problem = identifier(login)
        if embedded and (login.lower() in RESERVED_LOGINS or login.lower().startswith("pg_")):
            problem = f"'{login}' is reserved."
        if problem:
            errors.append(FieldError(LOGIN, problem, "InvalidLoginName"))
    if given and (not 8 <= len(given) <= 128 or invisible(given)):
        errors.append(
            FieldError(
                PASSWORD, "A password has 8 to 128 visible characters.", "PasswordNotComplex"
            )
        )
    if embedded:
        errors += fixed(LOGIN, login, was.get("administratorLogin"), "it owns the databases.")
    return errors
