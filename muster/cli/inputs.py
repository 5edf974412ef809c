"""What a user gives: texts from files or stdin, secrets never as an argument that others can see."""

import argparse
import getpass
import sys
from pathlib import Path

from muster.cli.client import Refused
from muster.core.settings import Secret


def add_script(made: argparse.ArgumentParser, *, required: bool = True) -> None:
    source = made.add_mutually_exclusive_group(required=required)
    source.add_argument("-c", "--command", dest="sql", metavar="SQL", help="the script itself")
    source.add_argument("-f", "--file", type=Path, metavar="FILE", help="that holds it; - is stdin")


def script(options: argparse.Namespace) -> str:
    sql: str = options.sql if options.sql is not None else text(options.file)
    return sql


def refused_by_grammar(sql: str) -> list[str]:
    """A warning where PostgreSQL's grammar does not take a script; a newer or older server still may."""
    from muster.core.script import split  # late: it loads the grammar
    from muster.core.sqltext import place

    script = split(sql)
    if script.parsed:
        return []
    where = place(script.text, script.position)
    return [
        f"warning: {where}: {script.refusal}. PostgreSQL 18's grammar refuses the script; "
        "the job was written, and targets may refuse it too."
    ]


def text(file: Path) -> str:
    """`-` is stdin."""
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise Refused(f"{file} can't be read: {error}") from error


def password(file: Path | None, prompt: str = "Password", *, is_new: bool = False) -> Secret:
    """`is_new`: nothing else knows it yet, so a typo on the terminal has to show here."""
    asks = file is None and sys.stdin.isatty()
    if file is not None:
        secret = text(file)
    else:
        secret = getpass.getpass(f"{prompt}: ") if asks else sys.stdin.read()
    what = prompt.split(maxsplit=1)[0].lower()
    plain = secret.rstrip("\r\n")
    if not plain:
        raise Refused(f"the {what} is empty")
    if is_new and asks and getpass.getpass(f"{prompt} again: ") != secret:
        raise Refused(f"the two {what}s differ; nothing was changed")
    return Secret(plain)


def agrees(question: str) -> bool:
    """Asked on a terminal only; without one the answer is no."""
    if not can_ask():
        return False
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
