"""The way to a server, once somebody there approves."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(
        work, Q.put_private_endpoint, args.name, text(args.document), text(args.condition)
    )
