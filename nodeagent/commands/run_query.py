"""A query without a job of its own."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.run_query, text(invocation.args.document))
