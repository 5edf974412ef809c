"""The servers that jobs or target groups lead to."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(
        invocation, Q.read_reached_servers, invocation.args.kind, list(invocation.args.names)
    )
