"""What a server may be."""

from typing import Any

import msgspec

from muster.core.egress import Rules
from muster.core.endpoint import Endpoint, check_endpoint
from muster.core.errors import FieldError
from muster.core.settings import Settings
from muster.core.weak_login import WEAK
from workflows.model.resource import Resource
from workflows.resource_kind import Draft
from workflows.roles import WEAKEN_AUTHENTICATION
from workflows.validation import ineffective
from workflows.validation.common import fixed, identifier, invisible, labels, no_longer, within
from workflows.validation.credential import LONGEST_SECRET

ENDPOINT = "properties.endpoint"
CLIENT_KEY = "endpoint.clientKey"
SECRETS = frozenset({"administratorLoginPassword", CLIENT_KEY})
MAX_HOSTS = 16
LOGIN = "properties.administratorLogin"
PASSWORD = "properties.administratorLoginPassword"  # noqa: S105 - a field name
RESERVED_LOGINS = {"postgres", "public", "none", "muster", "current_user", "session_user"}


def server(draft: Draft, old: Resource | None, settings: Settings) -> list[FieldError]:
    new = draft.properties
    was = old.properties if old else {}
    endpoint = new.get("endpoint")
    return [
        *_home(endpoint, old, settings),
        *(_endpoint(draft, moved(draft, old), settings) if endpoint is not None else []),
        *_administrator(draft, was, moved(draft, old), embedded=endpoint is None),
        *within("properties.maxConnections", new.get("maxConnections"), 1, 10_000),
        *within("properties.connectionsPerSecond", new.get("connectionsPerSecond"), 0.1, 1_000),
        *within("properties.slotsPerDatabase", new.get("slotsPerDatabase"), 1, 1_000),
        *labels("properties.labels", new.get("labels")),
        *ineffective.server(new),
    ]


def moved(draft: Draft, old: Resource | None) -> list[str]:
    """The fields of the endpoint whose change means that another server may answer."""
    new, was = draft.properties.get("endpoint"), (old.properties if old else {}).get("endpoint")
    if not new or not was:
        return []
    here, there = (msgspec.convert(each, Endpoint).identity for each in (new, was))
    return [name for name, value in here.items() if value != there[name]]


def unusable(draft: Draft, old: Resource) -> frozenset[str]:
    """Secrets were given for the server at its old endpoint: no other one gets them."""
    return SECRETS if moved(draft, old) else frozenset()


def needs(draft: Draft, old: Resource | None) -> list[str]:
    """Who lets passwords be shown to a server must be an Owner of it, also where that server moves."""
    new, was = (
        each.get("endpoint") or {} for each in (draft.properties, old.properties if old else {})
    )
    method = new.get("authentication")
    if method not in WEAK or (method == was.get("authentication") and not moved(draft, old)):
        return []
    return [WEAKEN_AUTHENTICATION]


def _home(endpoint: Any, old: Resource | None, settings: Settings) -> list[FieldError]:
    where = ENDPOINT
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


def _endpoint(draft: Draft, moved: list[str], settings: Settings) -> list[FieldError]:
    document = draft.properties["endpoint"]
    if moved and "clientCertificate" in document and CLIENT_KEY not in draft.secrets:
        return [FieldError(f"{ENDPOINT}.clientKey", _again(moved))]
    if CLIENT_KEY in draft.secrets:
        document = document | {"clientKey": draft.secrets[CLIENT_KEY]}
    elif CLIENT_KEY in draft.kept:  # sealed: the pair was checked when it came
        document = {name: value for name, value in document.items() if name != "clientCertificate"}
    endpoint = msgspec.convert(document, Endpoint)
    errors = check_endpoint(endpoint, Rules.of(settings), target=ENDPOINT)
    if len(endpoint.hosts) > MAX_HOSTS:
        errors.append(FieldError(f"{ENDPOINT}.hosts", f"At most {MAX_HOSTS} hosts."))
    if problem := identifier(endpoint.maintenance_database):
        errors.append(FieldError(f"{ENDPOINT}.maintenanceDatabase", problem))
    return errors


def _again(moved: list[str]) -> str:
    return (
        f"The endpoint's {', '.join(moved)} changed, and the stored secret was given for the old one: "
        "give it again."
    )


def _administrator(
    draft: Draft, was: dict[str, Any], moved: list[str], *, embedded: bool
) -> list[FieldError]:
    login = draft.properties.get("administratorLogin")
    password = draft.secrets.get("administratorLoginPassword")
    stored = "administratorLoginPassword" in draft.kept
    errors: list[FieldError] = []
    if embedded and not login:
        errors.append(
            FieldError(LOGIN, "An administrator login is required.", "InvalidParameterValue")
        )
    if login and not (password or stored):
        missing = "A password is required with an administrator login."
        errors.append(FieldError(PASSWORD, _again(moved) if moved else missing))
    if password and not login:
        errors.append(FieldError(LOGIN, "A login is required with a password."))
    if login:
        problem = identifier(login)
        if embedded and (login.lower() in RESERVED_LOGINS or login.lower().startswith("pg_")):
            problem = f"'{login}' is reserved."
        if problem:
            errors.append(FieldError(LOGIN, problem, "InvalidLoginName"))
    errors += _password(password, embedded=embedded)
    if embedded:
        errors += fixed(LOGIN, login, was.get("administratorLogin"), "it owns the databases.")
    return errors


def _password(password: str | None, *, embedded: bool) -> list[FieldError]:
    """That of a registered server exists already: only what can't be a password is refused."""
    if not password:
        return []
    if embedded and (not 8 <= len(password) <= 128 or invisible(password)):
        message = "A password has 8 to 128 visible characters."
        return [FieldError(PASSWORD, message, "PasswordNotComplex")]
    errors = no_longer(PASSWORD, password, LONGEST_SECRET)
    if "\0" in password:
        errors.append(FieldError(PASSWORD, "A password has no zero character."))
    return errors
