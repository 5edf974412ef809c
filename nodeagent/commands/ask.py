"""Leaves a question for the engine."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    return await call(invocation, Q.ask, args.request_id, args.kind, text(args.args))
