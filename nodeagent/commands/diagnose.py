"""Who holds a lock that the account needs, and whether everybody may connect to the control database."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    return await call(invocation, Q.diagnose)
