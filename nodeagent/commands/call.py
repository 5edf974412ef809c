"""How a command of class `operate` is run: one function call as the account's agent role."""

from typing import Any

import msgspec

from nodeagent import journal
from nodeagent.invocation import Invocation


async def call(invocation: Invocation, query: str, *args: Any) -> str:
    """The function's answer, checked; the first one again where the command is journalled."""
    databases = invocation.services.databases
    if invocation.spec.repeatable:
        async with databases.look(invocation.access) as connection:
            answer: str = await connection.fetchval(query, *args)
        invocation.check(answer)
        return answer
    async with databases.operate(
        invocation.access, invocation.spec.timeout, size=invocation.size
    ) as connection:

        async def effect() -> str:
            answer: str = await connection.fetchval(query, *args)
            return answer

        answer = await journal.once(connection, invocation, effect)
        invocation.check(answer)  # before the commit
        return answer


def text(document: Any) -> str:
    """As the queries take jsonb."""
    return msgspec.json.encode(document).decode()
