"""The metadata database of `muster up`: the embedded cluster, or the one that the operator names."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from muster.core.cluster import HOST, Cluster
from muster.core.db import Connection, Database, open_database
from muster.core.errors import InvalidRequest
from muster.core.migrate import migrate
from muster.core.scram import verifier
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries
from muster.roles.key_check import check_keys

Q = Queries("muster.roles.sql", "bootstrap.sql")

NAME = "muster"
ROLE = "muster_app"  # of the running processes
OWNER = "muster_owner"  # of database and tables; it has no login
OLDEST = 14
CONNECTIONS = 100
MIGRATIONS = "workflows.migrations"


@dataclass(frozen=True)
class Migrator:
    """How the owner of the tables is reached, where it is another role than that of the processes."""

    url: Secret
    role: str | None = None  # taken on after the login; None: the login itself is the owner


def embedded(folder: Path) -> Cluster:
    return Cluster(folder, max_connections=CONNECTIONS)


async def prepare_embedded(cluster: Cluster, password: Secret) -> tuple[Secret, Migrator]:
    """Cluster, roles and database are there afterwards, however often it was begun; the URL of the
    running processes, and the owner of the tables, which they are not.
    """
    await cluster.create()
    port = await cluster.start()
    # One statement each: CREATE DATABASE refuses to be part of a transaction.
    async with AsyncExitStack() as stack:
        root = await _opened(stack, Settings(database_url=cluster.superuser_url(), pool_size=1))
        await root.execute(await root.fetchval(Q.role_statement, ROLE, verifier(password)))
        for query in (Q.owner_statement, Q.database_statement):
            statement = await root.fetchval(query, NAME, OWNER)
            if statement:
                await root.execute(statement)
    migrator = Migrator(cluster.superuser_url(NAME), OWNER)
    async with AsyncExitStack() as stack:
        inside = await _opened(stack, Settings(database_url=migrator.url, pool_size=1))
        await inside.execute(await inside.fetchval(Q.reassign_statement, ROLE, OWNER))
    url = f"postgresql://{ROLE}:{password.reveal()}@{HOST}:{port}/{NAME}?sslmode=disable"
    return Secret(url), migrator


async def bring_up_to_date(settings: Settings, migrator: Migrator | None = None) -> list[str]:
    """The migrations that were applied; refuses a server that is too old, and envelope keys of another database.

    With an owner apart, the role of the processes gets the rights to run, and none to change the audit.
    """
    if migrator is None and settings.database_owner_url:
        migrator = Migrator(settings.database_owner_url)
    async with AsyncExitStack() as stack:
        running = await _opened(stack, settings)
        version = await running.fetchval(Q.server_version)
        if version < OLDEST * 10_000:
            raise InvalidRequest(
                f"MUSTER_DATABASE_URL names PostgreSQL {version // 10_000}; "
                f"Muster needs {OLDEST} or newer.",
                code="PostgresVersionNotAvailable",
            )
        role = await running.fetchval(Q.current_role)
        owner = running
        if migrator:
            owner = await _opened(stack, Settings(database_url=migrator.url, pool_size=1))
        connection = await stack.enter_async_context(owner.connection())
        if migrator and migrator.role:
            await connection.execute(await connection.fetchval(Q.become_statement, migrator.role))
        if migrator:
            await _check_apart(connection, role)
        applied = await migrate(connection, MIGRATIONS)
        if migrator:
            await connection.execute(await connection.fetchval(Q.runtime_rights, role))
        await connection.execute(Q.keep_audit, settings.audit_kept or None)
        await check_keys(running, Keyring(settings.keys))
        return applied


async def _check_apart(connection: Connection, role: str) -> None:
    """An owner that the role of the processes is, or can become, would protect nothing."""
    if await connection.fetchval(Q.can_become_owner, role):
        raise InvalidRequest(
            f"MUSTER_DATABASE_OWNER_URL: the role '{role}' of MUSTER_DATABASE_URL is, owns or can "
            "become what the owner should have alone. Use another role there that is no member of "
            f"the owner; tables that '{role}' has made are handed over by: "
            f"reassign owned by {role} to <owner>",
            code="InvalidDatabaseOwner",
        )


async def _opened(stack: AsyncExitStack, settings: Settings) -> Database:
    database = await open_database(settings, application="muster-up")
    stack.push_async_callback(database.close)
    return database
