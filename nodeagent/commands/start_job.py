"""A new execution of a job, or the one that has this id."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(work, Q.start_job, args.job, args.execution_id, text(args.document))
