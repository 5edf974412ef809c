"""The `muster` command: parses, then hands over; each role and tool is imported only when asked for."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from muster.cli import account, credential, group, job, query, run, server, target, webhook
from muster.cli.arguments import EXIT_CODES, Commands, Parser
from muster.cli.exits import Exit
from muster.core.settings import Secret
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


def main(argv: Sequence[str] | None = None) -> int:
    options = parser().parse_args(argv)
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
        description="Runs SQL jobs over fleets of PostgreSQL databases.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"muster {VERSION}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_processes(commands)
    for each in (account, credential, server, group, job, run, target, query, webhook):
        each.add(commands)
    demo = commands.add_parser("demo", help="a short tour in a data directory of its own")
    demo.add_argument("--data-dir", type=Path, default=Path(".demo"))
    demo.set_defaults(run=_demo)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=_version)
    config = commands.add_parser("config", help="show the settings")
    config.add_argument("what", choices=["print", "reference"])
    config.add_argument("--data-dir", type=Path, help="print: of a `muster up` (default: by XDG)")
    config.set_defaults(run=_config)
    _add_backup(commands)
    audit = commands.add_parser("audit", help="the audit of the metadata database")
    checks = audit.add_subparsers(dest="what", required=True, metavar="COMMAND")
    verify = checks.add_parser("verify", help="find events that were changed, removed or added")
    verify.add_argument("--data-dir", type=Path, help="of a `muster up` (default: by XDG)")
    verify.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="what an earlier verify printed: these entries must still have their hashes",
    )
    verify.set_defaults(run=_verify_audit)
    return top


def _add_processes(commands: Commands) -> None:
    up = commands.add_parser("up", help="run everything on this machine, in the foreground")
    up.add_argument("--data-dir", type=Path, help="directory of all data (default: by XDG)")
    up.add_argument("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="%(default)s")
    up.add_argument("--ready-file", type=Path, help="receives url and token once all is up")
    up.add_argument("--tls", action="store_true", help="serve https with a local CA")
    up.add_argument(
        "--allow-target",
        action="append",
        type=_address,
        default=[],
        metavar="HOST[:PORT]",
        help="added to MUSTER_TARGET_ALLOW, such as 127.0.0.1:5432; can be repeated",
    )
    up.set_defaults(run=_up)
    for role, about in ROLES.items():
        one = commands.add_parser(role, help=about)
        one.add_argument("--ready-file", type=Path)
        one.set_defaults(run=_role)
    for role, about in WORKLOADS.items():
        one = commands.add_parser(role, help=about)
        one.add_argument("--data-dir", type=Path, help="data directory of its launcher")
        one.add_argument(
            "--start-file", type=Path, required=True, help="settings and secrets of the process"
        )
        one.set_defaults(run=_workload)


def _address(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; HOST or HOST:PORT is needed")
    return text


def _add_backup(commands: Commands) -> None:
    backup = commands.add_parser(
        "backup", help="copy the data directory of a `muster up`, which may run meanwhile"
    )
    backup.add_argument("folder", type=Path, metavar="DIR", help="new folder of the backup")
    backup.add_argument("--data-dir", type=Path, help="of the `muster up` (default: by XDG)")
    backup.set_defaults(run=_backup)
    restore = commands.add_parser("restore", help="make a data directory from a backup")
    restore.add_argument("folder", type=Path, metavar="DIR", help="folder of the backup")
    restore.add_argument("--data-dir", type=Path, help="new data directory (default: by XDG)")
    restore.set_defaults(run=_restore)
    for each in (backup, restore):
        each.add_argument(
            "--passphrase-file",
            type=Path,
            metavar="FILE",
            help="holds the passphrase that seals keys and passwords; - is stdin; default: asked for",
        )


def _demo(options: argparse.Namespace) -> int:
    from muster.cli import demo

    return demo.run(options.data_dir)


def _version(_: argparse.Namespace) -> int:
    print(f"muster {VERSION}")
    return 0


def _role(options: argparse.Namespace) -> int:
    from muster.roles import process

    return process.main(options.command, options.ready_file)


def _workload(options: argparse.Namespace) -> int:
    from muster.roles import process

    return process.workload(options.command, options.start_file)


def _up(options: argparse.Namespace) -> int:
    from muster.roles import up

    chosen = up.Options(
        data_dir=options.data_dir or up.default_data_dir(),
        listen=options.listen,
        ready_file=options.ready_file,
        tls=options.tls,
        allow_target=tuple(options.allow_target),
    )
    return up.main(chosen)


def _backup(options: argparse.Namespace) -> int:
    from muster.roles import backup, up

    def run(phrase: Secret) -> int:
        return backup.main(options.data_dir or up.default_data_dir(), options.folder, phrase)

    return _with_passphrase(options, run, is_new=True)


def _restore(options: argparse.Namespace) -> int:
    from muster.roles import restore, up

    def run(phrase: Secret) -> int:
        return restore.main(options.folder, options.data_dir or up.default_data_dir(), phrase)

    return _with_passphrase(options, run, is_new=False)


def _with_passphrase(
    options: argparse.Namespace, run: Callable[[Secret], int], *, is_new: bool
) -> int:
    from muster.cli import inputs
    from muster.cli.client import Refused

    try:
        phrase = inputs.password(options.passphrase_file, "Passphrase", is_new=is_new)
    except Refused as refused:
        print(f"muster: {refused}", file=sys.stderr)
        return Exit.USAGE
    return run(phrase)


def _verify_audit(options: argparse.Namespace) -> int:
    from muster.cli import config
    from muster.roles import audit

    settings = config.load(options.data_dir)
    return Exit.USAGE if settings is None else audit.main(settings, options.heads)


def _config(options: argparse.Namespace) -> int:
    if options.what == "reference":
        from muster.cli import reference

        print(reference.markdown())
        return 0
    from muster.cli import config

    return config.show(options.data_dir)
