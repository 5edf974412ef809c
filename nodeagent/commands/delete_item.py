"""Removes a definition, unless something still names it."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(
        work, Q.delete_item, args.kind, list(args.path), text(args.condition), text(args.options)
    )
