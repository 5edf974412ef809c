"""Who logs in at targets; the secret arrives sealed or as a reference."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Work


async def run(work: Work) -> str:
    args = work.args
    document = {"username": args.username}
    if args.secret is not None:
        document["secret"] = args.secret
    return await call(work, Q.put_credential, args.name, text(document), text(args.condition))
