"""The servers that jobs or target groups lead to."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.read_reached_servers, work.args.kind, list(work.args.names))
