"""Whether the schema is as it was installed."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.verify)
