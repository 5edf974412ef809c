"""Where a role, a lock or a token holds: one option names the scope, from the whole installation to one resource."""

import argparse
from collections.abc import Callable

from muster.cli import lookup
from muster.cli.arguments import Parser
from muster.cli.client import Api, Refused, under

TENANT = "/"
ACCOUNT = "of_account"  # `account` would be that of the environment or the context
OPTIONS = ("scope", "server", "database", "pool", ACCOUNT, "resource_group", "subscription")


def add(made: Parser, what: str, default: str | None = "the whole installation") -> None:
    """`what` follows the word `scope` in the help; without a default one of the options is needed."""
    without = f"default: {default}" if default else "one of them is needed"
    group = made.add_argument_group(f"scope {what}; {without}")
    group.add_argument("--subscription", metavar="NAME")
    about = "of --subscription, or of the only one there is"
    group.add_argument("--resource-group", metavar="GROUP", help=about)
    group.add_argument("--server", metavar="SERVER")
    group.add_argument("--database", metavar="SERVER/DATABASE")
    group.add_argument("--pool", metavar="SERVER/POOL")
    group.add_argument("--account", dest=ACCOUNT, metavar="ACCOUNT", help="NAME or SERVER/NAME")
    group.add_argument("--scope", metavar="ID", help="a resource id; / is the whole installation")


def of(api: Api, options: argparse.Namespace) -> str:
    """As the beginning of a path: empty for the whole installation."""
    scope = given(api, options)
    return "" if scope in (None, TENANT) else str(scope)


def named(api: Api, options: argparse.Namespace) -> str:
    """Likewise, and refused where nothing was said: what holds everywhere is never meant by leaving it out."""
    if not any(getattr(options, each) for each in OPTIONS):
        raise Refused(
            f"which scope? Give {', '.join(map(_option, OPTIONS[1:]))} or --scope; "
            "--scope / is the whole installation"
        )
    return of(api, options)


def given(api: Api, options: argparse.Namespace) -> str | None:
    """None: no option was given."""
    said = [each for each in OPTIONS if getattr(options, each)]
    if not said:
        return None
    if len(said) > 1 and set(said) != {"resource_group", "subscription"}:
        one, other = map(_option, said[:2])
        raise Refused(f"{one} and {other} name two scopes")
    value = getattr(options, said[0])
    find: dict[str, Callable[[], str]] = {
        "scope": lambda: _id(value),
        "server": lambda: lookup.server(api, value),
        "database": lambda: lookup.on_server(api, value, "databases", "database"),
        "pool": lambda: lookup.on_server(api, value, "elasticPools", "pool"),
        ACCOUNT: lambda: lookup.account(api, argparse.Namespace(account=value)),
        "resource_group": lambda: lookup.resource_group(api, value, options.subscription),
        "subscription": lambda: under("/subscriptions", value),
    }
    return find[said[0]]()


def shown(scope: str | None) -> str:
    """As people read it: the kind and name of the last part."""
    words = (scope or TENANT).strip("/").split("/")
    if len(words) < 2:
        return TENANT
    kinds = {
        "subscriptions": "subscription",
        "resourcegroups": "resource-group",
        "servers": "server",
        "databases": "database",
        "elasticpools": "pool",
        "jobagents": "account",
    }
    kind = kinds.get(words[-2].lower(), words[-2])
    on_server = kind in {"database", "pool", "account"}
    return f"{kind} {words[-3]}/{words[-1]}" if on_server else f"{kind} {words[-1]}"


def _option(name: str) -> str:
    return f"--{name.replace('of_', '').replace('_', '-')}"


def _id(text: str) -> str:
    if not text.startswith("/"):
        raise Refused(f"'{text}' is no resource id: it begins with /")
    return text.rstrip("/") or TENANT
