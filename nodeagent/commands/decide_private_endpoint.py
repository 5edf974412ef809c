"""Whether a private endpoint may be used."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(work, Q.decide_private_endpoint, args.name, args.status, args.server_id)
