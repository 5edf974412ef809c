"""Properties of Azure's models that Muster can't do: refused where a user could rely on them.

Properties without any consequence (a database's sku, a server's version) are stored and shown.
"""

from collections.abc import Mapping
from typing import Any

from muster.core.errors import FieldError

CODE = "PropertyNotSupported"
COLLATION = "SQL_Latin1_General_CP1_CI_AS"  # the default, which Azure's clients send
ALLOWED: dict[str, dict[str, tuple[tuple[Any, ...], str]]] = {
    "database": {
        "createMode": (("Default",), "Muster creates empty databases; it neither copies nor restores."),
        "collation": ((COLLATION,), "A database has the collation of its server."),
        "catalogCollation": (
            (COLLATION, "DATABASE_DEFAULT"), "A database has the collation of its server.",
        ),
        "isLedgerOn": ((False,), "PostgreSQL has no ledger."),
    },
    "server": {
        "publicNetworkAccess": (("Enabled",), "Muster can't close a server's network."),
        "restrictOutboundNetworkAccess": (
            ("Disabled",), "Muster can't restrict what a server connects to.",
        ),
        "createMode": (("Default", "Normal"), "Muster can't restore a server."),
        "retentionDays": ((0, -1), "A deleted server is not kept."),
    },
}  # fmt: skip
SOURCES = (
    "sourceDatabaseId", "sourceResourceId", "restorePointInTime", "sourceDatabaseDeletionDate",
    "recoveryServicesRecoveryPointId", "longTermRetentionBackupResourceId",
    "recoverableDatabaseId", "restorableDroppedDatabaseId",
)  # fmt: skip
ABSENT: dict[str, dict[str, str]] = {
    "database": dict.fromkeys(SOURCES, "Muster neither copies nor restores databases.")
    | {
        "sampleName": "Muster creates empty databases.",
        "keys": "Encryption keys of a database have no effect.",
        "encryptionProtector": "Encryption keys of a database have no effect.",
    },
    "server": {"keyId": "Encryption keys of a server have no effect."},
}
TLS = "minimalTlsVersion"
TLS_VERSIONS = ("None", "1.0", "1.1", "1.2")  # tls_context allows nothing below 1.2


def database(properties: Mapping[str, Any]) -> list[FieldError]:
    return _refused("database", properties)


def server(properties: Mapping[str, Any]) -> list[FieldError]:
    return _refused("server", properties) + _tls(properties)


def _refused(kind: str, properties: Mapping[str, Any]) -> list[FieldError]:
    errors = []
    for name, (allowed, why) in ALLOWED[kind].items():
        if name in properties and not _among(properties[name], allowed):
            choice = " or ".join(str(each) for each in allowed)
            errors.append(_error(name, f"{why} Leave it out, or send {choice}."))
    for name, why in ABSENT[kind].items():
        if properties.get(name):
            errors.append(_error(name, f"{why} Leave it out."))
    return errors


def _tls(properties: Mapping[str, Any]) -> list[FieldError]:
    """An embedded server is reached over loopback only, so no promise about TLS is broken there."""
    wanted = properties.get(TLS)
    if wanted is None or wanted == "None":
        return []
    if wanted not in TLS_VERSIONS:
        versions = ", ".join(TLS_VERSIONS)
        return [_error(TLS, f"Connections have TLS 1.2 or newer; expected one of {versions}.")]
    if (properties.get("endpoint") or {}).get("sslMode") == "disable":
        message = "With the endpoint's sslMode disable no connection has TLS. Leave it out."
        return [_error(TLS, message)]
    return []


def _among(value: Any, allowed: tuple[Any, ...]) -> bool:
    if isinstance(value, str):
        return value.lower() in {str(each).lower() for each in allowed}
    return value in allowed


def _error(name: str, message: str) -> FieldError:
    return FieldError(f"properties.{name}", message, CODE)
