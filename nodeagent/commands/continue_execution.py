"""An execution that is halted or between two waves goes on, or ends."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.continue_execution, args.job, args.execution_id, args.abort)
