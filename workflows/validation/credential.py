"""What a credential may be."""

from typing import Any

from muster.core import credential_references
from muster.core.errors import FieldError
from muster.core.settings import Settings
from workflows.validation import common

USERNAME = "properties.username"
REFERENCE = "properties.reference"
SERVERS = "properties.servers"
MOST_SERVERS = 1_000
LONGEST = 128
LONGEST_SECRET = 10_000


def credential(name: str, properties: dict[str, Any], settings: Settings) -> list[FieldError]:
    return [
        *common.item_name(name),
        *_username(properties["username"]),
        *_password(properties.get("password") or "", properties.get("reference")),
        *_reference(properties.get("reference"), settings),
        *_servers(properties.get("servers")),
    ]


def _username(text: str) -> list[FieldError]:
    why = None
    if not 1 <= len(text) <= LONGEST:
        why = f"A user name has 1 to {LONGEST} characters."
    elif "$(" not in text:
        why = common.identifier(text)
    elif common.invisible(text) or text != text.strip():
        why = "A user name has no control characters and no space at either end."
    return [FieldError(USERNAME, why, "InvalidJobCredentialUsername")] if why else []


def _password(password: str, reference: str | None) -> list[FieldError]:
    """What is wrong is said without repeating it."""
    if password and reference:
        return [FieldError(REFERENCE, "Give either a password or a reference.")]
    if len(password) > LONGEST_SECRET:
        message = f"A password has at most {LONGEST_SECRET} characters."
        return [FieldError("properties.password", message)]
    return []


def _servers(names: list[str] | None) -> list[FieldError]:
    if names is None:
        return []
    if not names or ("*" in names and len(names) > 1):
        return [FieldError(SERVERS, "Name at least one server, or * alone for any server.")]
    if len(names) > MOST_SERVERS:
        return [FieldError(SERVERS, f"A credential lists at most {MOST_SERVERS} servers.")]
    return []


def _reference(text: str | None, settings: Settings) -> list[FieldError]:
    if not text:
        return []
    allowed = settings.credential_references
    why = credential_references.malformed(text) or credential_references.not_allowed(text, allowed)
    return [FieldError(REFERENCE, why, "CredentialReferenceNotAllowed")] if why else []
