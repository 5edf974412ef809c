"""The first result of each command, kept in the control database in the transaction of its effect."""

from collections.abc import Awaitable, Callable

from muster.core.db import Connection
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation

Effect = Callable[[], Awaitable[str]]


async def begin(connection: Connection, invocation: Invocation) -> str | None:
    """What the first run answered, as JSON; None: this is the first one."""
    row = await connection.fetchrow(
        Q.begin_command,
        invocation.command_id,
        invocation.spec.name,
        invocation.digest,
        invocation.caller,
        invocation.door.value,
    )
    assert row is not None
    result: str = row["result"]
    return result if row["known"] else None


async def end(connection: Connection, invocation: Invocation, result: str) -> None:
    await connection.execute(Q.end_command, invocation.command_id, result)


async def once(connection: Connection, invocation: Invocation, effect: Effect) -> str:
    """Runs the effect, or answers as its first run did."""
    recorded = await begin(connection, invocation)
    if recorded is not None:
        return recorded
    result = await effect()
    await end(connection, invocation, result)
    return result
