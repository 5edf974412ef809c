"""A rule that yields targets: its members are replaced."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(
        invocation, Q.put_target_group, args.name, text(args.document), text(args.condition)
    )
