"""Changes a job or a step in what the patch says."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    path = list(args.path)
    return await call(work, Q.patch, args.kind, path, text(args.patch), text(args.condition))
