"""A receiver of notifications; its secret arrives sealed."""

from nodeagent.commands.call import call, text
from nodeagent.control_db import Q
from nodeagent.invocation import Invocation


async def run(invocation: Invocation) -> str:
    args = invocation.args
    secret = {} if args.secret is None else {"secret": args.secret}
    document = text({**args.document, **secret})
    return await call(invocation, Q.put_webhook, args.name, document, text(args.condition))
