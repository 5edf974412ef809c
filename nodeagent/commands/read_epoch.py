"""Who is in charge of the account's jobs, and when it was last heard of."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.read_epoch)
