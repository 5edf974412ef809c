"""The metadata database of `muster up`: the embedded cluster, or the one that the operator names."""

from pathlib import Path

from muster.core.cluster import HOST, Cluster
from muster.core.db import open_database
from muster.core.errors import InvalidRequest
from muster.core.migrate import migrate
from muster.core.scram import verifier
from muster.core.secrets import Keyring
from muster.core.settings import Secret, Settings
from muster.core.sql import Queries
from muster.roles.key_check import check_keys

Q = Queries("muster.roles.sql", "bootstrap.sql")

NAME = "muster"
ROLE = "muster_app"
OLDEST = 14
CONNECTIONS = 100
MIGRATIONS = "workflows.migrations"


def embedded(folder: Path) -> Cluster:
    return Cluster(folder, max_connections=CONNECTIONS)


async def prepare_embedded(cluster: Cluster, password: Secret) -> Secret:
    """Cluster, role and database are there afterwards, however often it was begun; the role's URL."""
    await cluster.create()
    port = await cluster.start()
    superuser = Settings(database_url=cluster.superuser_url(), pool_size=1)
    database = await open_database(superuser, application="muster-up")
    try:
        # One statement each: CREATE DATABASE refuses to be part of a transaction.
        await database.execute(await database.fetchval(Q.role_statement, ROLE, verifier(password)))
        statement = await database.fetchval(Q.database_statement, NAME, ROLE)
        if statement:
            await database.execute(statement)
    finally:
        await database.close()
    url = f"postgresql://{ROLE}:{password.reveal()}@{HOST}:{port}/{NAME}?sslmode=disable"
    return Secret(url)


async def bring_up_to_date(settings: Settings) -> list[str]:
    """The migrations that were applied; refuses a server that is too old, and envelope keys of another database."""
    database = await open_database(settings, application="muster-up")
    try:
        version = await database.fetchval(Q.server_version)
        if version < OLDEST * 10_000:
            raise InvalidRequest(
                f"MUSTER_DATABASE_URL names PostgreSQL {version // 10_000}; "
                f"Muster needs {OLDEST} or newer.",
                code="PostgresVersionNotAvailable",
            )
        async with database.connection() as connection:
            applied = await migrate(connection, MIGRATIONS)
        await check_keys(database, Keyring(settings.keys))
        return applied
    finally:
        await database.close()
