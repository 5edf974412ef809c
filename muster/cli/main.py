"""The `muster` command: parses, then hands over; only the module of the command that is called is imported."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

from muster.cli.arguments import EXIT_CODES, Commands, Parser, command
from muster.cli.exits import Exit

COMMANDS = {  # heading → name → module in muster/cli, whose `add` gets the parser; one line of help
    "fleet": {
        "account": ("account", "manage job accounts"),
        "server": ("server", "manage the PostgreSQL servers that jobs run on"),
        "group": ("group", "manage target groups: where jobs run"),
        "target": ("target", "look at one database or schema"),
        "database": ("database", "manage databases that Muster created, and their labels"),
        "pool": ("pool", "manage elastic pools: databases of a server that share a budget"),
        "resource-group": (
            "resource_group",
            "manage resource groups: what is deployed, granted and deleted together",
        ),
        "provider": ("provider", "manage which resource providers a subscription uses"),
        "operation": ("operation", "look at long-running operations and wait for them"),
        "subscription": ("subscription", "manage subscriptions: what resource groups belong to"),
    },
    "jobs": {
        "job": ("job", "define jobs, start and stop them"),
        "step": ("step", "change the steps of a job, and their order"),
        "apply": ("declared.commands", "make an account have what files state"),
        "diff": ("declared.commands", "show what differs between files and an account"),
        "export": ("declared.export", "print an account as the files that muster apply takes"),
    },
    "runs": {
        "run": ("run", "show runs, wait for them, cancel them"),
        "exec": (
            "query",
            "run SQL on a group or on named targets now; read only and rolled back unless --write",
        ),
        "webhook": ("webhook", "manage receivers of notifications"),
    },
    "access": {
        "credential": ("credential", "manage the logins that jobs use at targets"),
        "role": ("role", "look at roles, and manage who has which role where"),
        "lock": ("lock", "manage locks against changes and deletion"),
        "token": ("token", "manage service tokens, with which programs use the API"),
        "private-endpoint": (
            "private_endpoint",
            "manage connections of an account to servers that need an approval",
        ),
        "audit": ("audit", "look at what was done and by whom, and check that it is complete"),
    },
    "tools": {
        "demo": ("demo", "take a short tour in a data directory of its own"),
        "login": ("login", "log in to an API and keep how it is reached, as a context"),
        "logout": ("login", "forget a token that muster login kept"),
        "context": ("context", "choose among the APIs that muster login kept"),
        "completion": ("completion", "print a script that completes commands in your shell"),
        "help": ("help", "show what a command does, such as muster help job create"),
        "version": ("version", "print the version"),
    },
    "for operators": {
        "up": ("operators", "run everything on this machine, in the foreground"),
        "backup": (
            "operators",
            "copy the data directory of a `muster up`, which may run meanwhile",
        ),
        "restore": ("operators", "make a data directory from a backup"),
        "migrate": ("operators", "bring the metadata database of separate processes up to date"),
        "config": ("operators", "show the settings"),
        "api": ("operators", "run the public REST API"),
        "fsm": ("operators", "run the runner that moves resources through their lifecycles"),
        "launcher": ("operators", "start and watch engines and hosts"),
        "nodeagent": ("operators", "run commands in the control databases"),
        "engine": ("operators", "run the engine of one job account; started by a launcher"),
        "host": ("operators", "run a host of one job account; started by a launcher"),
    },
}


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["__complete"]:  # by the script of `muster completion`
        from muster.cli import completion

        return completion.complete(words[1:])
    options = parser().parse_args(words)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # `muster run list | head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.SUCCEEDED
    except KeyboardInterrupt:
        print("\nmuster: interrupted", file=sys.stderr)
        return Exit.INTERRUPTED
    return code


def parser() -> Parser:
    top = Parser(
        prog="muster",
        usage="muster COMMAND [VERB] [options]",
        description="Runs SQL jobs over fleets of PostgreSQL databases.",
        epilog="\n\n".join([*_headings(), EXIT_CODES]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands: Commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog="muster", help=argparse.SUPPRESS
    )
    for under_heading in COMMANDS.values():
        for name, (module, about) in under_heading.items():
            command(commands, name, about, fill=partial(_import, module))
    return top


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        from muster.core.version import VERSION  # late: it reads the metadata of the package

        parser.exit(message=f"muster {VERSION}\n")


def _import(module: str, made: Parser) -> None:
    importlib.import_module(f"muster.cli.{module}").add(made)


def _headings() -> list[str]:
    width = max(len(name) for under_heading in COMMANDS.values() for name in under_heading)
    return [
        "\n".join(
            [
                f"{heading}:",
                *(f"  {name:<{width}}  {about}" for name, (_, about) in under_heading.items()),
            ]
        )
        for heading, under_heading in COMMANDS.items()
    ]
