"""A step of a job; a change makes a new version of the job."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation, Q.put_step, args.job, args.name, text(args.document), text(args.condition)
    )
