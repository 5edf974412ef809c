"""What in an account uses some servers."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.read_server_users, list(invocation.args.server_ids))
