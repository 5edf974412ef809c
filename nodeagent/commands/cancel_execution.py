"""Nothing of an execution goes on."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.work import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(work, Q.cancel_execution, args.job, args.execution_id, args.reason)
