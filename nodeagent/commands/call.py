"""How a command of class `operate` is run: one function call as the account's agent role."""

from typing import Any

import msgspec

from nodeagent import journal
from nodeagent.invocation import Invocation


async def call(invocation: Invocation, query: str, *args: Any) -> str:
    """The function's answer; the first one again where the command is journalled."""
    databases = invocation.services.databases
    if invocation.spec.repeatable:
        async with databases.look(invocation.access) as connection:
            return _checked(invocation, await connection.fetchval(query, *args))
    async with databases.operate(invocation.access, invocation.spec.timeout) as connection:

        async def effect() -> str:
            return _checked(invocation, await connection.fetchval(query, *args))

        return await journal.once(connection, invocation, effect)


def text(document: Any) -> str:
    """As the queries take jsonb."""
    return msgspec.json.encode(document).decode()


def _checked(invocation: Invocation, answer: str) -> str:
    invocation.answer(answer)
    return answer
