"""`muster completion`: the script for a shell, which asks `muster __complete` for the words that can follow."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from muster.cli.arguments import Parser, epilog
from muster.cli.exits import Exit

FILES = ":files"  # what the shell itself completes
PLACES = {"DIR", "FILE", "PATH"}
SCRIPTS = {
    "bash": """\
_muster() {
    local IFS=$'\\n' found
    found=($("${COMP_WORDS[0]}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    COMPREPLY=()
    if [ "${found[0]}" = ":files" ]; then
        compopt -o default 2>/dev/null
    else
        COMPREPLY=("${found[@]}")
    fi
}
complete -F _muster muster
""",
    "zsh": """\
#compdef muster
_muster() {
    local -a found
    found=("${(@f)$("${words[1]}" __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ "${found[1]}" == ":files" ]]; then
        _files
    elif [[ -n "${found[1]}" ]]; then
        _describe -t commands muster found
    fi
}
if [ "${funcstack[1]}" = "_muster" ]; then
    _muster "$@"
else
    compdef _muster muster
fi
""",
    "fish": """\
function __muster_complete
    set -l words (commandline -opc)
    set -l found ($words[1] __complete fish $words[2..-1] (commandline -ct) 2>/dev/null)
    if test "$found[1]" = ":files"
        __fish_complete_path (commandline -ct)
    else
        printf '%s\\n' $found
    end
end
complete -c muster -f -a '(__muster_complete)'
""",
}


def add(made: Parser) -> None:
    made.add_argument("shell", metavar="SHELL", choices=tuple(SCRIPTS), help=", ".join(SCRIPTS))
    made.epilog = epilog("source <(muster completion bash)")
    made.set_defaults(run=show)


def show(options: argparse.Namespace) -> int:
    print(SCRIPTS[options.shell], end="")
    return Exit.SUCCEEDED


def complete(words: Sequence[str]) -> int:
    """Of a shell: its name, and the words after `muster`, the last one as far as it is typed."""
    shell, *typed = words
    for word, about in candidates(typed):
        line = word.replace(":", "\\:") if shell == "zsh" and word != FILES else word
        separator = {"zsh": ":", "fish": "\t"}.get(shell)
        print(f"{line}{separator}{about}" if separator and about else line)
    return Exit.SUCCEEDED


def candidates(typed: Sequence[str]) -> list[tuple[str, str]]:
    """Each with a word about it."""
    *before, current = [word for word in typed if word != "="] or [""]
    if list(typed[-1:]) == ["="]:  # bash: --output=
        before, current = [*before, current], ""
    if before[:1] == ["help"]:
        before = before[1:]
    from muster.cli.main import parser

    made = parser()
    for at, word in enumerate(before):
        below = made.commands()
        if not below:
            return _of_command(made, before[at:], current)
        if word not in below:
            return []
        made = below[word]
    below = made.commands()
    if not below or current.startswith("-"):
        return _of_command(made, [], current)
    return [(name, _about(each)) for name, each in below.items() if name.startswith(current)]


def _of_command(made: Parser, before: Sequence[str], current: str) -> list[tuple[str, str]]:
    options = {name: each for each in made._actions for name in each.option_strings}  # noqa: SLF001 - argparse has no other way
    awaiting = options.get(before[-1]) if before else None
    if awaiting is not None and awaiting.nargs != 0:
        return _values(awaiting, "", current)
    name, is_whole, value = current.partition("=")
    if is_whole and name in options:
        return _values(options[name], f"{name}=", value)
    if current.startswith("-"):
        return [
            (name, each.help or "") for name, each in options.items() if name.startswith(current)
        ]
    return _values(_argument(made, before, options), "", current)


def _argument(
    made: Parser, before: Sequence[str], options: dict[str, argparse.Action]
) -> argparse.Action | None:
    """The argument without a name whose turn it is."""
    values = 0
    for previous, word in zip(("", *before), before, strict=False):
        takes_it = previous in options and options[previous].nargs != 0
        values += not (takes_it or word.startswith("-"))
    places = [each for each in made._actions if not each.option_strings]  # noqa: SLF001 - as above
    return places[min(values, len(places) - 1)] if places else None


def _values(action: argparse.Action | None, prefix: str, value: str) -> list[tuple[str, str]]:
    if action is None:
        return []
    if action.type is Path or action.metavar in PLACES:
        return [(FILES, "")]
    return [(f"{prefix}{each}", "") for each in _words(action) if each.startswith(value)]


def _words(action: argparse.Action) -> Iterator[str]:
    if action.choices is not None:
        yield from map(str, action.choices)
    elif action.dest == "context":
        from muster.cli import contexts

        yield from contexts.read().by_name


def _about(made: Parser) -> str:
    return (made.description or "").partition("\n")[0].removesuffix(".")
