"""The servers that the account may reach, as the control plane knows them at a revision."""

from typing import Any

import msgspec

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work
from nodeagent.protocol import SyncDirectory


async def run(work: Work) -> str:
    return await call(work, Q.sync_directory, work.args.revision, text(_rows(work.args)))


def _rows(args: SyncDirectory) -> list[dict[str, Any]]:
    """Keys travel beside the servers, so that these are the same whenever they are sent."""
    keys = args.client_keys
    return [
        msgspec.to_builtins(server) | {"client_key": keys.get(server.server_id)}
        for server in args.servers
    ]
