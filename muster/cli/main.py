"""The `muster` command: parses, then hands over; each role and tool is imported only when asked for."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from muster.core.settings import PREFIX, Settings, SettingsError, shown
from muster.core.version import VERSION

ROLES = {
    "api": "the public REST API",
    "fsm": "the runner that moves resources through their lifecycles",
    "launcher": "starts and watches engines and hosts",
    "nodeagent": "runs commands in the control databases",
}
WORKLOADS = {
    "engine": "the engine of one job account; started by a launcher",
    "host": "a host of one job account; started by a launcher",
}


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one for each command
    options = parser().parse_args(argv)
    match options.command:
        case "up":
            return _up(options)
        case "demo":
            from muster.cli import demo

            return demo.run(options.data_dir)
        case "account":
            from muster.cli import account

            return account.run(options)
        case "credential":
            from muster.cli import credential

            return credential.run(options)
        case "version":
            print(f"muster {VERSION}")
            return 0
        case "config":
            return _config(options.what)
        case role if role in WORKLOADS:
            from muster.roles import process

            return process.workload(role, options.start_file)
        case role:
            from muster.roles import process

            return process.main(role, options.ready_file)


def parser() -> argparse.ArgumentParser:
    from muster.cli import account, credential

    top = argparse.ArgumentParser(
        prog="muster", description="Runs SQL jobs over fleets of PostgreSQL databases."
    )
    top.add_argument("--version", action="version", version=f"muster {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="run everything on this machine, in the foreground")
    up.add_argument("--data-dir", type=Path, help="where all data lives (default: by XDG)")
    up.add_argument("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="%(default)s")
    up.add_argument("--ready-file", type=Path, help="receives url and token once all is up")
    up.add_argument("--tls", action="store_true", help="serve https with a local CA")
    for role, about in ROLES.items():
        one = commands.add_parser(role, help=about)
        one.add_argument("--ready-file", type=Path)
    for role, about in WORKLOADS.items():
        one = commands.add_parser(role, help=about)
        one.add_argument("--data-dir", type=Path, help="of its launcher")
        one.add_argument("--start-file", type=Path, required=True, help="all that it knows")
    demo = commands.add_parser("demo", help="a short tour in a data directory of its own")
    demo.add_argument("--data-dir", type=Path, default=Path(".demo"))
    account.add(commands)
    credential.add(commands)
    commands.add_parser("version", help="print the version")
    config = commands.add_parser("config", help="look at the settings")
    config.add_argument("what", choices=["print", "reference"])
    return top


def _up(options: argparse.Namespace) -> int:
    from muster.roles import up

    chosen = up.Options(
        data_dir=options.data_dir or up.default_data_dir(),
        listen=options.listen,
        ready_file=options.ready_file,
        tls=options.tls,
    )
    return up.main(chosen)


def _config(what: str) -> int:
    if what == "reference":
        from muster.cli import reference

        print(reference.markdown())
        return 0
    try:
        settings = Settings.load()
    except SettingsError as error:
        print(f"muster: {error}", file=sys.stderr)
        return 1
    for field in fields(settings):
        print(f"{PREFIX}{field.name.upper()}={shown(getattr(settings, field.name))}")
    return 0
