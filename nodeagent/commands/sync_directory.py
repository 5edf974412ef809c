"""The servers that the account may reach, as the control plane knows them at a revision."""

import msgspec

from nodeagent.commands.call import call
from nodeagent.control_db import Q
from nodeagent.work import Work


async def run(work: Work) -> str:
    servers = msgspec.json.encode(work.args.servers).decode()
    return await call(work, Q.sync_directory, work.args.revision, servers)
