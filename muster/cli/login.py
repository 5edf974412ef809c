"""`muster login` and `muster logout`: a token is tried, then kept with its URL as a context."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from muster.cli import contexts, inputs, lookup, reaching
from muster.cli.arguments import Parser, epilog
from muster.cli.client import Api, Refused, reaching_out
from muster.cli.contexts import DEFAULT_URL, Context, Contexts, Place
from muster.cli.exits import Exit
from muster.core.settings import surroundings


def add(made: Parser) -> None:
    if made.name == "logout":
        made.add_argument("name", metavar="NAME", nargs="?", help="default: the context in use")
        made.epilog = epilog("muster logout prod")
        made.set_defaults(run=logout)
        return
    made.add_argument(
        "url", metavar="URL", nargs="?", help="of the API; default: as other commands"
    )
    made.add_argument("--name", help="of the context; default: the host of the URL")
    made.add_argument(
        "--token-file", type=Path, metavar="FILE", help="- is stdin; default: asked for, or stdin"
    )
    made.add_argument("--account", metavar="ACCOUNT", help="of commands that name none")
    made.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="PEM of the CA that signed its certificate"
    )
    made.epilog = epilog("muster login https://muster.internal:8443")
    made.set_defaults(run=login)


def login(options: argparse.Namespace) -> int:
    try:
        kept = contexts.read()
        name, context = _meant(kept, options)
        if wrong := reaching.wrong_address(context.url):
            raise Refused(wrong)
        if context.url.startswith("http://") and not reaching.is_local(context.url):
            print(f"warning: the token goes to {context.url} without TLS", file=sys.stderr)
        token = inputs.password(options.token_file, "Token").reveal()
    except Refused as refused:
        print(refused.line, file=sys.stderr)
        return refused.code
    ca_file = Path(context.ca_file) if context.ca_file else None

    def check_and_keep(api: Api) -> int:
        _try_token(api)
        if options.account:
            lookup.named(api, options.account)
        contexts.write(replace(kept.having(name, replace(context, token=token)), current=name))
        print(f"Logged in to {context.url}. The context '{name}' is in use.")
        return Exit.SUCCEEDED

    return reaching_out(Place(context.url, token, "login", None, ca_file), check_and_keep)


def logout(options: argparse.Namespace) -> int:
    try:
        kept = contexts.read()
        name = options.name or surroundings().get("MUSTER_CONTEXT") or kept.current
        if name is None:
            raise Refused("no context is in use; muster logout NAME names one")
        contexts.write(kept.having(name, replace(kept.named(name), token="")))
    except Refused as refused:
        print(refused.line, file=sys.stderr)
        return refused.code
    print(
        f"The token of the context '{name}' is forgotten; muster context delete removes the rest."
    )
    return Exit.SUCCEEDED


def _try_token(api: Api) -> None:
    """A token that may do little is one, too."""
    try:
        api.get("/subscriptions", {"$top": 1})
    except Refused as refused:
        if refused.error != "AuthorizationFailed":
            raise


def _meant(kept: Contexts, options: argparse.Namespace) -> tuple[str, Context]:
    """A context that is there keeps what is not named."""
    environ = surroundings()
    known = kept.by_name.get(options.name or environ.get("MUSTER_CONTEXT") or kept.current or "")
    default = known.url if known else environ.get("MUSTER_URL") or DEFAULT_URL
    url = (options.url or default).rstrip("/")
    name = options.name or _name(kept, url)
    old = kept.by_name.get(name, Context(url))
    if old.url != url and not options.name:
        raise Refused(f"the context '{name}' is of {old.url}: give this one a name by --name")
    old = old if old.url == url else Context(url)
    ca_file = str(options.ca_file.absolute()) if options.ca_file else old.ca_file
    return name, Context(url, "", options.account or old.account, ca_file)


def _name(kept: Contexts, url: str) -> str:
    for name, context in kept.by_name.items():
        if context.url == url:
            return name
    return "local" if reaching.is_local(url) else urlsplit(url).hostname or url
