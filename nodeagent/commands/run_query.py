"""A query without a job of its own."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.run_query, text(work.args.document))
