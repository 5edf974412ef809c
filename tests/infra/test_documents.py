"""docs/how-to/install.md and terraform.md: their commands are ours, and their names are those of the files."""

import re
import shlex

import pytest

from muster.cli.main import parser
from tests.infra.installation import ROOT
from tests.infra.test_containers import COMPOSE
from tests.infra.units import UNITS, service

PAGES = {name: (ROOT / f"docs/how-to/{name}.md").read_text() for name in ("install", "terraform")}
COMMANDS = [
    pytest.param(line, id=f"{name}: {line[:40]}")
    for name, text in PAGES.items()
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_names_files_and_options_that_are_there(line):
    for word in shlex.split(line, comments=True):
        if word.startswith(("infra/", "./infra/")) and "/secrets/" not in word:
            assert list(ROOT.glob(word.removeprefix("./"))), word
        if "/secrets/" in word:
            assert word.rsplit("/", 1)[-1] in {*COMPOSE["secrets"], "valkey_password"}, word
        if word.endswith(".lock"):
            assert (ROOT / word).exists()
    if line.startswith("muster "):
        assert parser().parse_args(shlex.split(line, comments=True)[1:]).run


def test_the_table_of_credentials_has_those_of_the_units():
    told = set(re.findall(r"^\| `([\w-]+)` \|", PAGES["install"], re.MULTILINE))
    used = {
        line.split(":")[0] for name in UNITS for line in service(name)["Service"]["LoadCredential"]
    }

    assert told == used
