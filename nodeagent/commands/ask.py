"""Leaves a question for the engine."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    return await call(work, Q.ask, args.request_id, args.kind, text(args.args))
