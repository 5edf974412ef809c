"""Sends events to a webhook again."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    ids = None if args.event_ids is None else list(args.event_ids)
    return await call(invocation, Q.replay_deliveries, args.name, ids)
