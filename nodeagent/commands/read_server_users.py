"""What in an account uses some servers."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    return await call(work, Q.read_server_users, list(work.args.server_ids))
