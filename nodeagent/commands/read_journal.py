"""Whether a command took effect."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.read_journal, invocation.args.command_id)
