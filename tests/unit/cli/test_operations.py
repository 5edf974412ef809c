"""Everything that REST can do, a command can do, or the table says why not; each command shows an example that works."""

import json
import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from muster.cli.main import parser
from openapi.commands import COMMANDS
from openapi.operations import base

DOCUMENT = json.loads((Path(__file__).parents[3] / "openapi/openapi.json").read_text("utf-8"))
OPERATIONS = {
    base(each["operationId"]) for methods in DOCUMENT["paths"].values() for each in methods.values()
}


def commands(made=None):
    made = made or parser()
    below = made.commands()
    for child in below.values():
        yield from commands(child)
    if not below:
        yield made.prog, made


ALL = dict(commands())


def test_every_operation_has_a_command_or_a_reason_and_nothing_else_has():
    assert COMMANDS.keys() == OPERATIONS


@pytest.mark.parametrize("operation", sorted(COMMANDS))
def test_the_commands_of_an_operation_exist(operation):
    entry = COMMANDS[operation]

    if entry.startswith("("):
        assert entry.endswith(")") and len(entry) > 10
        return
    named = {f"muster {each}" for each in entry.split(", ")}
    assert named <= ALL.keys()


def test_few_operations_have_no_command():
    assert sum(entry.startswith("(") for entry in COMMANDS.values()) < 16


def test_a_reason_names_a_command_that_exists():
    """The words before an argument in capitals, or before the rest of the sentence."""
    for entry in COMMANDS.values():
        if entry.startswith("("):
            said = re.findall(r"[\w-]+", entry)
            assert any(f"muster {' '.join(said[:length])}" in ALL for length in (1, 2, 3)), entry


@pytest.mark.parametrize("path", sorted(ALL))
def test_every_command_shows_an_example_that_parses(path, capsys):
    example = re.search(r"^example:\n  (.+)$", ALL[path].epilog or "", re.MULTILINE)

    assert example, f"{path} has no example"
    if path == "muster completion":  # what a shell does with it
        assert example[1] == "source <(muster completion bash)"
        return
    words = list(takewhile(lambda word: word not in {"|", ">", "&&"}, shlex.split(example[1])))
    assert " ".join(words[: len(path.split())]) == path
    try:
        parser().parse_args(words[1:])
    except SystemExit:
        pytest.fail(capsys.readouterr().err)
