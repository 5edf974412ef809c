"""The metadata database: one pool per process, short transactions, outages as Unavailable."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import asyncpg
import msgspec

from muster.core.errors import Unavailable
from muster.core.settings import Settings

if TYPE_CHECKING:  # generic only in its stubs
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection
Row = asyncpg.Record

AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.InsufficientResourcesError,  # disk full, out of memory, too many connections
    asyncpg.PostgresSystemError,  # I/O errors
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.ReadOnlySQLTransactionError,
)

# The server ends an idle transaction; waits for locks are short.
SERVER_SETTINGS = {
    "application_name": "muster",
    "statement_timeout": "5000",
    "lock_timeout": "2000",
    "idle_in_transaction_session_timeout": "5000",
    "timezone": "UTC",
}


class Session(Connection):
    """Nothing of ours outlives a transaction, so a connection needs no reset between two users.

    asyncpg still rolls back a transaction that was left open.
    """

    def get_reset_query(self) -> str:
        return ""


class Database:
    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]") -> None:
        self.pool = pool

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        with away_is_unavailable():
            async with self.pool.acquire(timeout=5) as connection:
                yield connection  # type: ignore[misc]  # the pool's proxy behaves as a connection

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def fetch(self, query: str, *args: Any) -> list[Row]:
        async with self.connection() as connection:
            return await connection.fetch(query, *args)

    async def fetchrow(self, query: str, *args: Any) -> Row | None:
        async with self.connection() as connection:
            return await connection.fetchrow(query, *args)

    async def fetchval(self, query: str, *args: Any) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(query, *args)

    async def execute(self, query: str, *args: Any) -> None:
        async with self.connection() as connection:
            await connection.execute(query, *args)

    async def close(self) -> None:
        with contextlib.suppress(*AWAY):
            async with asyncio.timeout(5):
                await self.pool.close()


@contextlib.contextmanager
def away_is_unavailable() -> Any:
    try:
        yield
    except AWAY as error:
        raise Unavailable(
            "The metadata database can't be reached right now; the request can be sent again.",
            context=f"{type(error).__name__}: {error}",
            retry_after=1,
        ) from error


async def open_database(settings: Settings, *, application: str = "muster") -> Database:
    pool = await asyncpg.create_pool(
        settings.database_url.reveal(),
        min_size=1,
        max_size=settings.pool_size,
        init=prepare,
        connection_class=Session,
        timeout=10,
        server_settings=SERVER_SETTINGS | {"application_name": application},
    )
    return Database(pool)


async def prepare(connection: Any) -> None:
    """Jsonb travels as Python values in both directions."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name,
            schema="pg_catalog",
            encoder=lambda value: msgspec.json.encode(value).decode(),
            decoder=msgspec.json.decode,
        )
