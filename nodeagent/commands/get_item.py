"""One definition or execution."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.get_item, invocation.args.kind, list(invocation.args.path))
