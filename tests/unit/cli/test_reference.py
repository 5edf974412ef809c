"""docs/reference/command-line.md has every command with its options, and every exit code."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from muster.cli.exits import MEANINGS
from muster.cli.main import parser

PAGE = (Path(__file__).parents[3] / "docs/reference/command-line.md").read_text(encoding="utf-8")
COMMON = {"-h", "--help", "-o", "--output", "--query", "--url", "--context", "--account"}


def commands(made=None):
    """Every command that does something, by the words that name it."""
    made = made or parser()
    below = made.commands()
    for child in below.values():
        yield from commands(child)
    if not below:
        yield made.prog, made


COMMANDS = dict(commands())


def sections():
    found = {}
    for title, body in re.findall(r"^### (.+?)$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        for told in re.findall(r"`([^`]+)`", title):
            words = re.match(r"muster(?: [a-z][a-z-]*)*", told.replace("print|reference", ""))[0]
            found[words.strip()] = f"{told}\n{body}"
    return found


SECTIONS = sections()


def test_the_page_has_exactly_the_commands_that_exist():
    assert set(SECTIONS) == set(COMMANDS)
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_every_option_and_argument_of_a_command_is_told(path):
    told = set(re.findall(r"--?[a-z][a-z-]*|[A-Z]{3,}", SECTIONS[path]))
    options = {text for action in COMMANDS[path]._actions for text in action.option_strings}
    arguments = {
        word
        for action in COMMANDS[path]._actions
        if not action.option_strings and action.metavar
        for word in re.findall(r"[A-Z]{3,}", action.metavar)
    }

    assert options - COMMON <= told
    assert arguments <= told


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_no_option_is_told_that_does_not_exist(path):
    block = re.search(r"^```\n(.*?)^```$", SECTIONS[path], re.MULTILINE | re.DOTALL)
    told = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", block[1])) if block else set()
    options = {text for action in COMMANDS[path]._actions for text in action.option_strings}

    assert told <= options


def test_common_options_are_told():
    for option in COMMON - {"-h", "--help"}:
        assert f"`{option}" in PAGE


def test_every_exit_code_is_told_with_its_meaning():
    rows = dict(re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE))

    assert rows == {str(code.value): meaning for code, meaning in MEANINGS.items()}


def examples():
    for page in sorted((Path(__file__).parents[3] / "docs/reference").glob("*.md")):
        for block in re.findall(r"```sh\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                lexer = shlex.shlex(line, posix=True, punctuation_chars="|&><")
                lexer.whitespace_split = True
                words = list(takewhile(lambda word: word[0] not in "|&><", lexer))
                if words and words[0] == "muster":
                    yield pytest.param(words[1:], id=f"{page.stem}: {' '.join(words[1:4])}")


@pytest.mark.parametrize("words", list(examples()))
def test_every_example_of_the_reference_is_a_command(words, capsys):
    try:
        parser().parse_args(words)
    except SystemExit:
        pytest.fail(capsys.readouterr().err)
