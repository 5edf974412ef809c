"""Who logs in at targets; the secret arrives sealed or as a reference."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    document: dict[str, object] = {"username": args.username}
    if args.secret is not None:
        document["secret"] = args.secret
    if args.servers is not None:
        document["servers"] = args.servers
    return await call(invocation, Q.put_credential, args.name, text(document), text(args.condition))
