"""An execution of a job that may be gone, or what there is to tell about one."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.read_execution, args.kind, list(args.path), text(args.options))
