"""Which databases of a server jobs reach without naming them: one rule for engines and the control plane."""

from collections.abc import Collection, Mapping
from typing import Any

# Of PostgreSQL itself. The setting `provider_databases` has those of hosting providers.
POSTGRESQL_OWN = frozenset({"postgres", "template0", "template1"})
LABELS_DIFFER, NOT_INCLUDED = "LabelsNotMatched", "NotIncluded"  # why a database is no target
NOT_GRANTED = "ConnectNotGranted"
PROVIDER_DATABASES = ("rdsadmin", "cloudsqladmin", "alloydbadmin", "azure_maintenance", "azure_sys")


def is_own(name: str, provider_databases: Collection[str]) -> bool:
    """Whether the database belongs to the server or its provider; a target group can still name it."""
    own = name.lower()
    return own in POSTGRESQL_OWN or own in {each.lower() for each in provider_databases}


def left_out(row: Mapping[str, Any], provider_databases: Collection[str]) -> str | None:
    """Why enumeration passes a database over, or None when it does not."""
    if row["template"]:
        return "Template"
    if row["invalid"]:
        return "Invalid"
    if not row["connectable"]:
        return "ConnectionsNotAllowed"
    if is_own(row["name"], provider_databases):
        return "ServersOwn"
    if not row["granted"]:
        return NOT_GRANTED
    return None
