"""A page of definitions or executions."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation,
        Q.list_items,
        args.kind,
        list(args.path),
        None if args.after is None else text(args.after),
        args.top,
        text(args.filters),
    )
