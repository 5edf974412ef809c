"""A rule that yields targets: its members are replaced."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(
        work, Q.put_target_group, args.name, text(args.document), text(args.condition)
    )
