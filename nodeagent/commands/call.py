"""How a command of class `operate` is run: one function call as the account's agent role."""

from typing import Any

from nodeagent import journal
from nodeagent.work import Work


async def call(work: Work, query: str, *args: Any) -> str:
    """The function's answer; the first one again where the command is journalled."""
    async with work.means.databases.operate(work.access, work.spec.timeout) as connection:

        async def effect() -> str:
            text: str = await connection.fetchval(query, *args)
            work.answer(text)
            return text

        if work.spec.repeatable:
            return await effect()
        return await journal.once(connection, work, effect)
