"""How a command of class `operate` is run: one function call as the account's agent role."""

from typing import Any

import msgspec

from nodeagent import journal
from nodeagent.invocation import Work


async def call(work: Work, query: str, *args: Any) -> str:
    """The function's answer; the first one again where the command is journalled."""
    databases = work.means.databases
    if work.spec.repeatable:
        async with databases.look(work.access) as connection:
            return _checked(work, await connection.fetchval(query, *args))
    async with databases.operate(work.access, work.spec.timeout) as connection:

        async def effect() -> str:
            return _checked(work, await connection.fetchval(query, *args))

        return await journal.once(connection, work, effect)


def text(document: Any) -> str:
    """As the queries take jsonb."""
    return msgspec.json.encode(document).decode()


def _checked(work: Work, answer: str) -> str:
    work.answer(answer)
    return answer
