"""Compares what steps need of a login with what it may do; each missing right has its GRANT statement."""

from collections.abc import Iterator
from typing import Any

from engine.targets.examination import MISSING, Needs, Rights
from engine.targets.findings import Finding, grant
from muster.core.connect_errors import identifier

GUARD = "muster_guard"
SETS_ROLE = 160_000  # the first version in which a membership may exclude SET ROLE
OF_THE_ROLE = "Run the statement as an administrator of the role."
OF_THE_SCHEMA = "Run the statement as the owner of the schema."
OF_THE_DATABASE = "Run the statement as the owner of the database."


def findings(database: str, needs: Needs, rights: Rights) -> Iterator[Finding]:
    """In the order in which an attempt would meet them."""
    if needs.writes and rights.session["standby"]:
        yield Finding(
            check="write",
            code="TargetReadOnly",
            message="The server is a standby, and a step of the group writes.",
            advice="Set endpoint.targetSessionAttrs of the server to read-write, or name the primary.",
        )
    if needs.guarded:
        yield from _guard(database, rights)
    for row in rights.roles:
        yield from _role(row, needs.schema, rights.session)


def _role(row: dict[str, Any], schema: str | None, session: dict[str, Any]) -> Iterator[Finding]:
    login, role = session["username"], row["name"] or session["username"]
    if not row["present"]:
        yield Finding(
            check="role",
            code="RoleNotFound",
            message=f"The role '{role}' of settings.role does not exist at the server.",
            advice="Create the role, or correct settings.role of the step.",
        )
        return
    if not row["granted"]:
        option = " WITH SET TRUE" if session["server_version"] >= SETS_ROLE else ""
        yield Finding(
            check="role",
            code="RoleNotGranted",
            message=f"The login '{login}' may not take the role '{role}'.",
            advice=OF_THE_ROLE,
            grants=(f"GRANT {identifier(role)} TO {identifier(login)}{option};",),
        )
    if row["has_schema"] is False:
        yield Finding(
            check="schema",
            code="SchemaNotFound",
            message=f"The schema '{schema}' does not exist.",
            advice="Was it dropped or renamed? Change the member of the group.",
        )
    elif schema is not None and row["uses_schema"] is False:
        yield Finding(
            check="schema",
            code="SchemaNotGranted",
            message=f"The role '{role}' may not use the schema '{schema}'.",
            advice=OF_THE_SCHEMA,
            grants=(grant("USAGE ON SCHEMA", schema, role),),
        )


def _guard(database: str, rights: Rights) -> Iterator[Finding]:
    login, guard = rights.session["username"], rights.guard
    if distrusted := [fault for fault in rights.guard_faults if fault != MISSING]:
        yield Finding(
            check="guard",
            code="GuardNotTrusted",
            message=f"A step of the group has a guard, and {'; '.join(distrusted)}.",
            advice=f"Let its owner run: DROP SCHEMA {GUARD} CASCADE; then the next attempt makes it.",
        )
        return
    grants = []
    if MISSING in rights.guard_faults and not rights.session["creates_schemas"]:
        grants.append(grant("CREATE ON DATABASE", database, login))
    if guard is not None:
        creates = guard["creates"] or MISSING not in rights.guard_faults
        if not (guard["uses"] and creates):
            missing = "USAGE" if creates else "USAGE, CREATE"
            grants.append(grant(f"{missing} ON SCHEMA", GUARD, login))
        if not guard["writes"]:
            grants.append(grant("SELECT, INSERT ON ALL TABLES IN SCHEMA", GUARD, login))
    if grants:
        yield Finding(
            check="guard",
            code="GuardNotGranted",
            message=f"A step of the group has a guard, and '{login}' may not make or write its tables.",
            advice=OF_THE_DATABASE,
            grants=tuple(grants),
        )
