"""How commands are declared: one line each, the common options and the exit codes for all."""

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from itertools import takewhile
from typing import Any, NoReturn, TypeAlias

from muster.cli.exits import MEANINGS, Exit
from muster.cli.output import FORMS, OF_ROWS
from muster.cli.typed import did_you_mean, duration, one_of

__all__ = (
    "EXIT_CODES",
    "Command",
    "Commands",
    "Parser",
    "add_choice",
    "at_place",
    "calls_api",
    "command",
    "count",
    "duration",
    "epilog",
    "may_wait",
    "of_account",
    "pair",
    "prints",
    "verb",
    "verbs_of",
)

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 - it has no other name
Command: TypeAlias = Callable[[argparse.Namespace], int]
SYNONYMS = {  # what other tools call it
    "add": ("create", "set"),
    "apply": ("set", "create"),
    "create": ("add", "set"),
    "describe": ("show",),
    "execute": ("exec",),
    "get": ("show", "list"),
    "logs": ("messages", "errors"),
    "ls": ("list",),
    "new": ("create", "add"),
    "query": ("exec",),
    "register": ("add",),
    "remove": ("delete",),
    "rm": ("delete",),
    "run": ("start",),
    "sql": ("exec",),
    "status": ("show",),
}
EXIT_CODES = "exit codes:\n" + "\n".join(
    f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items()
)


class Parser(argparse.ArgumentParser):
    """Refuses a wrong command in one line, with the exit code of usage errors.

    `fill` adds the arguments when they are needed: a call imports the module of its own command alone.
    """

    def __init__(
        self, *words: Any, fill: "Callable[[Parser], None] | None" = None, **more: Any
    ) -> None:
        super().__init__(*words, **more)
        self._fill = fill

    @property
    def name(self) -> str:
        return self.prog.rpartition(" ")[2]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.filled()
        self._refuse_unknown(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _refuse_unknown(self, words: Sequence[str]) -> None:
        """Before argparse finds something missing: what is missing may be what was misspelt."""
        if self.commands():
            return
        options = self._option_string_actions
        for word in takewhile(lambda word: word != "--", words):
            name = word.partition("=")[0]
            is_option = name.startswith("--") and " " not in name
            if is_option and not any(each.startswith(name) for each in options):
                self.error(f"there is no option {name}{did_you_mean(name, options)}")

    def filled(self) -> "Parser":
        fill, self._fill = self._fill, None
        if fill:
            fill(self)
        return self

    def commands(self) -> "dict[str, Parser]":
        """By name; none where the parser itself is one."""
        for action in self.filled()._actions:  # noqa: SLF001 - argparse has no other way
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
                return dict(action.choices)
        return {}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Where argparse lists all names, a wrong noun or verb gets the nearest one."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:  # noqa: SLF001 - as above
            what = "command" if action.dest == "command" else f"'{self.prog}'"
            raise argparse.ArgumentError(None, f"{_unknown(what, value, action.choices)}")
        super()._check_value(action, value)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Fixed words are accepted in any case, with or without hyphens."""
        is_verb = isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - as above
        if action.choices is not None and action.type is None and not is_verb:
            action.type = one_of(map(str, action.choices))
        return super()._get_value(action, arg_string)

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"muster: {message} (see {self.prog} --help)\n")


def command(
    commands: Commands,
    name: str,
    about: str,
    fill: Callable[[Parser], None] | None = None,
    aliases: Sequence[str] = (),
) -> Parser:
    return commands.add_parser(
        name,
        aliases=aliases,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        fill=fill,
    )


def verbs_of(noun: Parser) -> Commands:
    return noun.add_subparsers(dest="verb", required=True, metavar="VERB")


def verb(
    verbs: Commands,
    name: str,
    run: Command,
    about: str,
    *,
    example: str = "",
    of_rows: bool = False,
    aliases: Sequence[str] = (),
) -> Parser:
    made = command(verbs, name, about, aliases=aliases)
    return calls_api(made, run, example=example, of_rows=of_rows)


def calls_api(made: Parser, run: Command, *, example: str = "", of_rows: bool = False) -> Parser:
    """A command that calls the API; the example is a command line that works, as users type it."""
    at_place(prints(made, run, example=example, forms=OF_ROWS if of_rows else FORMS))
    return made


def prints(
    made: Parser, run: Command, *, example: str = "", forms: Collection[str] = FORMS
) -> Parser:
    """A command with an answer that scripts read."""
    made.epilog = epilog(example)
    made.set_defaults(run=run)
    add_choice(made, "-o", "--output", choices=forms, default="table", help="default: table")
    made.add_argument(
        "--query", type=_query, metavar="JMESPATH", help="show only this part of the API's answer"
    )
    return made


def epilog(example: str) -> str:
    return f"example:\n  {example}\n\n{EXIT_CODES}"


def at_place(made: Parser) -> Parser:
    made.add_argument(
        "--url", help="of the API; default: MUSTER_URL, the context's, or http://127.0.0.1:8080"
    )
    made.add_argument(
        "--context",
        metavar="NAME",
        help="of muster login; default: MUSTER_CONTEXT, or the one in use",
    )
    return made


def may_wait(made: Parser) -> Parser:
    made.add_argument(
        "--no-wait", action="store_true", help="print the operation and let it go on by itself"
    )
    return made


def of_account(made: Parser) -> Parser:
    made.add_argument(
        "--account",
        metavar="ACCOUNT",
        help="NAME, SERVER/NAME or resource id; default: MUSTER_ACCOUNT, the context's, or the only one",
    )
    return made


def add_choice(
    made: argparse.ArgumentParser, *names: str, choices: Collection[str], **more: Any
) -> None:
    """An option with fixed words, in any case, with or without hyphens."""
    made.add_argument(*names, choices=choices, type=one_of(choices), **more)


def _query(text: str) -> object:
    from muster.cli import documents  # late: few calls need it

    return documents.compiled(text)


def count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0 on")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"'{text}' is not KEY=VALUE")
    return key, value


def _unknown(what: str, word: str, names: Collection[str]) -> str:
    near = did_you_mean(word, names)
    if not near:
        synonyms = [name for name in SYNONYMS.get(word.lower(), ()) if name in names]
        near = f"; did you mean {synonyms[0]}?" if synonyms else f"; there are: {', '.join(names)}"
    if what == "command":
        return f"there is no command '{word}'{near}"
    return f"{what} has no '{word}'{near}"
