"""Whether a private endpoint may be used."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.work import Work


async def run(work: Work) -> str:
    return await call(work, Q.decide_private_endpoint, work.args.name, work.args.status)
