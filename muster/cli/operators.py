"""Commands for those who operate an installation: processes, backups, settings."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from muster.cli.arguments import Parser, epilog
from muster.cli.exits import Exit
from muster.core.places import default_data_dir
from muster.core.settings import Secret

ROLES = ("api", "fsm", "launcher", "nodeagent")
WORKLOADS = ("engine", "host")
EXAMPLES = {
    "up": "--data-dir ~/muster --allow-target db1.internal:5432",
    "backup": "/backups/monday --data-dir ~/muster",
    "restore": "/backups/monday --data-dir ~/restored",
    "migrate": "",
    "config": "print",
    **dict.fromkeys(ROLES, "--ready-file ready.json"),
    **dict.fromkeys(WORKLOADS, "--start-file start.json"),
}


def add(made: Parser) -> None:
    ADD[made.name](made)
    made.epilog = epilog(f"muster {made.name} {EXAMPLES[made.name]}".rstrip())


def _add_up(made: Parser) -> None:
    made.add_argument("--data-dir", type=Path, help="directory of all data (default: by XDG)")
    made.add_argument("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="%(default)s")
    made.add_argument("--ready-file", type=Path, help="receives url and token once all is up")
    made.add_argument("--tls", action="store_true", help="serve https with a local CA")
    made.add_argument(
        "--allow-target",
        action="append",
        type=_address,
        default=[],
        metavar="HOST[:PORT]",
        help="added to MUSTER_TARGET_ALLOW, such as 127.0.0.1:5432; can be repeated",
    )
    made.set_defaults(run=_up)


def _add_role(made: Parser) -> None:
    made.add_argument("--ready-file", type=Path)
    made.set_defaults(run=_role)


def _add_workload(made: Parser) -> None:
    made.add_argument("--data-dir", type=Path, help="data directory of its launcher")
    made.add_argument(
        "--start-file", type=Path, required=True, help="settings and secrets of the process"
    )
    made.set_defaults(run=_workload)


def _add_backup(made: Parser) -> None:
    made.add_argument("folder", type=Path, metavar="DIR", help="new folder of the backup")
    made.add_argument("--data-dir", type=Path, help="of the `muster up` (default: by XDG)")
    made.set_defaults(run=_backup)
    _add_passphrase(made)


def _add_restore(made: Parser) -> None:
    made.add_argument("folder", type=Path, metavar="DIR", help="folder of the backup")
    made.add_argument("--data-dir", type=Path, help="new data directory (default: by XDG)")
    made.set_defaults(run=_restore)
    _add_passphrase(made)


def _add_passphrase(made: Parser) -> None:
    made.add_argument(
        "--passphrase-file",
        type=Path,
        metavar="FILE",
        help="holds the passphrase that seals keys and passwords; - is stdin; default: asked for",
    )


def _add_migrate(made: Parser) -> None:
    made.set_defaults(run=_migrate)


def _add_config(made: Parser) -> None:
    made.add_argument("what", choices=["print", "reference"])
    made.add_argument("--data-dir", type=Path, help="print: of a `muster up` (default: by XDG)")
    made.set_defaults(run=_config)


ADD = {
    "up": _add_up,
    "backup": _add_backup,
    "restore": _add_restore,
    "migrate": _add_migrate,
    "config": _add_config,
    **dict.fromkeys(ROLES, _add_role),
    **dict.fromkeys(WORKLOADS, _add_workload),
}


def _migrate(_: argparse.Namespace) -> int:
    from muster.roles import migrate

    return migrate.main()


def _address(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; HOST or HOST:PORT is needed")
    return text


def _role(options: argparse.Namespace) -> int:
    from muster.roles import process

    return process.main(options.command, options.ready_file)


def _workload(options: argparse.Namespace) -> int:
    from muster.roles import process

    return process.workload(options.command, options.start_file)


def _up(options: argparse.Namespace) -> int:
    from muster.roles import up

    chosen = up.Options(
        data_dir=options.data_dir or default_data_dir(),
        listen=options.listen,
        ready_file=options.ready_file,
        tls=options.tls,
        allow_target=tuple(options.allow_target),
    )
    return up.main(chosen)


def _backup(options: argparse.Namespace) -> int:
    from muster.roles import backup

    def run(phrase: Secret) -> int:
        return backup.main(options.data_dir or default_data_dir(), options.folder, phrase)

    return _with_passphrase(options, run, is_new=True)


def _restore(options: argparse.Namespace) -> int:
    from muster.roles import restore

    def run(phrase: Secret) -> int:
        return restore.main(options.folder, options.data_dir or default_data_dir(), phrase)

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


def _config(options: argparse.Namespace) -> int:
    if options.what == "reference":
        from muster.cli import reference

        print(reference.markdown())
        return 0
    from muster.cli import config

    return config.show(options.data_dir)
