"""Whether a private endpoint may be used."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.decide_private_endpoint, args.name, args.status, args.server_id)
