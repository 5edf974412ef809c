"""A page of definitions or executions."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(
        work,
        Q.list_items,
        args.kind,
        list(args.path),
        None if args.after is None else text(args.after),
        args.top,
        text(args.filters),
    )
