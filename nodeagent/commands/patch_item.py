"""Changes a job or a step in what the patch says."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    path = list(args.path)
    return await call(invocation, Q.patch, args.kind, path, text(args.patch), text(args.condition))
