"""Nothing of an execution goes on, or nothing of one of its steps or targets."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    if args.step is not None:
        part = (args.step, args.target)
        return await call(
            invocation, Q.cancel_part, args.job, args.execution_id, *part, args.reason
        )
    return await call(invocation, Q.cancel_execution, args.job, args.execution_id, args.reason)
