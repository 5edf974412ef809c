"""A target that ended without success starts again in its execution."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation, Q.retry_target, args.job, args.execution_id, args.step, args.target
    )
