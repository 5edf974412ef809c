"""`muster audit …`: what was done and by whom."""

import argparse
from pathlib import Path

from muster.cli.arguments import Parser, command, verbs_of
from muster.cli.exits import Exit


def add(noun: Parser) -> None:
    verbs = verbs_of(noun)
    made = command(verbs, "verify", "find events that were changed, removed or added")
    made.add_argument("--data-dir", type=Path, help="of a `muster up` (default: by XDG)")
    made.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="what an earlier verify printed: these entries must still have their hashes",
    )
    made.set_defaults(run=verify)


def verify(options: argparse.Namespace) -> int:
    from muster.cli import config
    from muster.roles import audit

    settings = config.load(options.data_dir)
    return Exit.USAGE if settings is None else audit.main(settings, options.heads)
