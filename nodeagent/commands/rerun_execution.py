"""Starts a job on targets of an earlier execution."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation, Q.rerun_execution, args.job, args.execution_id, text(args.document)
    )
