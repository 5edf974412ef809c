"""A job and its schedule."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.put_job, args.name, text(args.document), text(args.condition))
