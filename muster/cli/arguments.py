"""How commands are declared: one line each, the common options and the exit codes for all."""

import argparse
import re
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from muster.cli.exits import MEANINGS, Exit
from muster.cli.output import FORMS

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - it has no other name
Run: TypeAlias = Callable[[argparse.Namespace], int]
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
EXIT_CODES = "exit codes:\n" + "\n".join(
    f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items()
)


class Parser(argparse.ArgumentParser):
    """Refuses a wrong command in one line, with the exit code of usage errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"muster: {message} (see {self.prog} --help)\n")


def noun(commands: Commands, name: str, about: str) -> Commands:
    made = commands.add_parser(name, help=about, description=about[0].upper() + about[1:] + ".")
    return made.add_subparsers(dest="verb", required=True, metavar="VERB")


def verb(verbs: Commands, name: str, run: Run, about: str) -> Parser:
    """A command that calls the API."""
    made = verbs.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(run=run)
    made.add_argument("-o", "--output", choices=FORMS, default="table", help="default: table")
    made.add_argument("--url", help="of the API; default: MUSTER_URL or http://127.0.0.1:8080")
    return made


def of_account(made: Parser) -> Parser:
    made.add_argument(
        "--account",
        metavar="ACCOUNT",
        help="NAME, SERVER/NAME or resource id; default: MUSTER_ACCOUNT, or the only one there is",
    )
    return made


def duration(told: str) -> int:
    """Seconds: 90, 90s, 15m, 2h, 1d."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd]?)", told)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{told}' is no duration such as 90, 15m or 2h")
    return int(match[1]) * UNITS[match[2] or "s"]


def count(told: str) -> int:
    if not (told.isascii() and told.isdigit()):
        raise argparse.ArgumentTypeError(f"'{told}' is no number from 0 on")
    return int(told)
