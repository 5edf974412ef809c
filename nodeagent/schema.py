"""The two schemas of a control database: who owns them, and how they are upgraded."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

from muster.core.db import Connection
from muster.core.errors import InvalidRequest, PreconditionFailed
from muster.core.migrate import migrate, refresh, scripts
from muster.core.sql import Queries
from nodeagent import journal, public_functions
from nodeagent.expected_schema import ExpectedSchema
from nodeagent.invocation import Invocation
from nodeagent.protocol import Roles

A = Queries("nodeagent.sql", "administer.sql")

GATE = 0x6D757374_6E6F6465  # "mustnode"
LEDGER = "jobs_internal.migration"
OLDEST = 14  # PostgreSQL for a control database; targets may be older


class SchemaOwnership(StrEnum):
    ABSENT = "absent"
    MINE = "mine"
    KEPT = "kept"  # by the administrator: left by an account, or restored without owners
    FOREIGN = "foreign"


@dataclass(frozen=True)
class SchemaState:
    ownership: SchemaOwnership
    login: str
    was_mine: bool  # only of what is kept
    has_journal: bool


async def find(connection: Connection, invocation: Invocation) -> SchemaState:
    """Takes the advisory lock of administrators: until the transaction ends no other one changes this database."""
    await connection.execute(A.gate, GATE)
    row = await connection.fetchrow(A.found)
    assert row is not None
    owners = {row["jobs"], row["internal"]} - {None}
    ownership, was_mine = SchemaOwnership.FOREIGN, False
    if not owners:
        ownership = SchemaOwnership.ABSENT
    elif owners == {invocation.roles.owner}:
        ownership = SchemaOwnership.MINE
    elif owners == {row["login"]} and row["has_instance"]:
        kept = await connection.fetchrow(A.kept_by)
        was_mine = kept is not None and kept["account_uid"] == invocation.account_uid
        if was_mine or (kept is not None and kept["released"]):
            ownership = SchemaOwnership.KEPT
    return SchemaState(ownership, row["login"], was_mine, row["has_journal"])


def refuse_old(connection: Connection) -> None:
    version = connection.get_server_version().major
    if version < OLDEST:
        raise InvalidRequest(
            f"The control database is on PostgreSQL {version}; it needs {OLDEST} or newer. "
            "Choose a database on another server: as a target this one will do.",
            code="ServerVersionUnsupported",
            target="properties.databaseId",
        )


def occupied() -> InvalidRequest:
    return InvalidRequest(
        "The database already has a schema 'jobs' or 'jobs_internal' that is not this account's. "
        "Choose another database, or remove those schemas.",
        code="ControlDatabaseOccupied",
        target="properties.databaseId",
    )


@contextlib.asynccontextmanager
async def owner(connection: Connection, roles: Roles) -> AsyncIterator[None]:
    """What is made inside belongs to the account's owner role."""
    await connection.execute(await connection.fetchval(A.become, roles.owner))
    yield
    await connection.execute(A.unbecome)


async def recall(connection: Connection, invocation: Invocation, state: SchemaState) -> str | None:
    """The first result of this command, where there is a journal already."""
    if state.ownership is not SchemaOwnership.MINE or not state.has_journal:
        return None
    async with owner(connection, invocation.roles):
        return await journal.begin(connection, invocation)


async def conclude(
    connection: Connection, invocation: Invocation, state: SchemaState, result: str
) -> None:
    """Inside `owner`: what is there is remembered, and the result for a repeat."""
    await connection.execute(A.remember_schema)
    if state.ownership is not SchemaOwnership.MINE or not state.has_journal:
        await journal.begin(connection, invocation)
    await journal.end(connection, invocation, result)


async def bring_up_to_date(
    connection: Connection, roles: Roles, expected_schema: ExpectedSchema, *, every: bool
) -> None:
    """Inside `owner`: migrations, functions, views and who may call them."""
    await _refuse_newer(connection, expected_schema)
    await migrate(connection, expected_schema.migrations, ledger=LEDGER)
    replaceable, rewrite = expected_schema.replaceable, public_functions.installed
    await refresh(connection, replaceable, ledger=LEDGER, every=every, rewrite=rewrite)
    pairs = expected_schema.audiences()
    names, who = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    statements = await connection.fetch(A.grants, roles.prefix, names, who)
    await connection.execute(";\n".join(row[0] for row in statements))


async def _refuse_newer(connection: Connection, expected_schema: ExpectedSchema) -> None:
    """An older agent would put older functions in the place of newer ones."""
    if not await connection.fetchval(A.has_ledger):
        return
    applied = {row["name"] for row in await connection.fetch(A.ledger)}
    ours = {name for name, _ in scripts(expected_schema.migrations)}
    numbered = {name for name in applied if "/" not in name}
    if newer := numbered - ours:
        raise PreconditionFailed(
            f"The schema is newer than this node agent (it has {max(newer)}).", code="Incompatible"
        )
