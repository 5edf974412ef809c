"""Nothing new starts until resume; what runs stops too where that is wanted."""

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    if work.args.cancel_running:
        return await call(work, Q.pause_and_cancel)
    return await call(work, Q.set_paused, True)
