"""A new execution of a job, or the one that has this id."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.start_job, args.job, args.execution_id, text(args.document))
