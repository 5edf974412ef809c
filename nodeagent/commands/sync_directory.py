"""The servers that the account may reach, as the control plane knows them at a revision."""

import msgspec

from muster.core.worker_thread import compute
from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation
from nodeagent.protocol import SyncDirectory

NO_RUN_ATTEMPTS = {"enabled": False}


async def run(invocation: Invocation) -> str:
    args = invocation.args
    rows = await compute(_rows, args, size=args.size)
    settings = args.same_error_limit, text(args.run_attempts or NO_RUN_ATTEMPTS)
    return await call(invocation, Q.sync_directory, args.revision, rows, *settings)


def _rows(args: SyncDirectory) -> str:
    """Keys travel beside the servers, so that these are the same whenever they are sent."""
    keys = args.client_keys
    return text(
        [
            msgspec.to_builtins(server) | {"client_key": keys.get(server.server_id)}
            for server in args.servers
        ]
    )
