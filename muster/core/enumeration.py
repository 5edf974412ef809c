"""Which databases of a server jobs reach without naming them: one list and one rule."""

from collections.abc import Mapping
from typing import Any

# The servers' and their providers' own; each can still be named.
SERVERS_OWN = frozenset(
    {
        "postgres",
        "template0",
        "template1",
        "rdsadmin",
        "cloudsqladmin",
        "alloydbadmin",
        "azure_maintenance",
        "azure_sys",
    }
)
NOT_GRANTED = "ConnectNotGranted"


def left_out(row: Mapping[str, Any]) -> str | None:
    """Why enumeration passes a database over, or None when it does not."""
    if row["template"]:
        return "Template"
    if row["invalid"]:
        return "Invalid"
    if not row["connectable"]:
        return "ConnectionsNotAllowed"
    if row["name"].lower() in SERVERS_OWN:
        return "ServersOwn"
    if not row["granted"]:
        return NOT_GRANTED
    return None
