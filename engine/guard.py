"""The table in a target by which a guarded script is applied once: its row commits with the script."""

from collections.abc import Awaitable, Callable

import asyncpg

from engine.prologue import identifier
from engine.session import Session
from muster.core.errors import Fault, InvalidRequest
from muster.core.sql import Queries

Q = Queries("engine", "attempt.sql")

TRIES = 5
RACES = (  # two who make it at once
    asyncpg.UniqueViolationError,
    asyncpg.DuplicateSchemaError,
    asyncpg.DuplicateTableError,
    asyncpg.InternalServerError,
)


async def make(session: Session, say: Callable[[str], Awaitable[object]]) -> None:
    for left in reversed(range(TRIES)):
        try:
            await say(Q.make_guard)
        except asyncpg.InsufficientPrivilegeError:
            raise _missing(
                session, "CREATE ON DATABASE " + identifier(session.key.database)
            ) from None
        except RACES:
            if not left:
                raise
        else:
            return


def missing_right(session: Session) -> Fault:
    return _missing(session, "USAGE ON SCHEMA muster_guard", "INSERT ON muster_guard.applied")


def _missing(session: Session, *rights: str) -> Fault:
    to = identifier(session.key.username)
    grants = " ".join(f"GRANT {right} TO {to};" for right in rights)
    return InvalidRequest(f"The step's guard needs a table in the target: {grants}")
