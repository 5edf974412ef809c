"""The first result of each command, kept in the control database in the transaction of its effect."""

from collections.abc import Awaitable, Callable

from muster.core.db import Connection
from nodeagent.control_db import Q
from nodeagent.invocation import Work

Effect = Callable[[], Awaitable[str]]


async def begin(connection: Connection, work: Work) -> str | None:
    """What the first run answered, as JSON; None: this is the first one."""
    row = await connection.fetchrow(
        Q.begin_command, work.command_id, work.spec.name, work.digest, work.caller, work.door.value
    )
    assert row is not None
    result: str = row["result"]
    return result if row["known"] else None


async def end(connection: Connection, work: Work, result: str) -> None:
    await connection.execute(Q.end_command, work.command_id, result)


async def once(connection: Connection, work: Work, effect: Effect) -> str:
    """Runs the effect, or answers as its first run did."""
    known = await begin(connection, work)
    if known is not None:
        return known
    result = await effect()
    await end(connection, work, result)
    return result
