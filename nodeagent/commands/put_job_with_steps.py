"""A job, its schedule and all its steps, in one transaction."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    documents = text(args.document), text(args.steps), text(args.condition)
    return await call(invocation, Q.put_job_with_steps, args.name, *documents, args.is_patch)
