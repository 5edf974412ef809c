"""An execution of a job that may be gone, or what there is to tell about one."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(work, Q.read_execution, args.kind, list(args.path), text(args.options))
