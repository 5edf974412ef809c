"""What the engine answered, if it has."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.read_request, work.args.request_id)
