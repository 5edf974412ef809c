"""Removes a definition, unless something still names it."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation,
        Q.delete_item,
        args.kind,
        list(args.path),
        text(args.condition),
        text(args.options),
    )
