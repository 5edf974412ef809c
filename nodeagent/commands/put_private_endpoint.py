"""A private endpoint to a server, which needs an approval there."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation, Q.put_private_endpoint, args.name, text(args.document), text(args.condition)
    )
