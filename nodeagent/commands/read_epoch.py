"""Who is in charge of the account's jobs, and when it was last heard of."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.read_epoch)
