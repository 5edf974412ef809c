"""Nothing new starts until resume; what runs stops too where that is wanted."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    if invocation.args.cancel_running:
        return await call(invocation, Q.pause_and_cancel)
    return await call(invocation, Q.set_paused, True)
