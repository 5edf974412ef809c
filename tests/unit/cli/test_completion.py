"""Completion: what can follow the words so far, and the scripts of the shells that ask for it."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from muster.cli import completion, contexts
from muster.cli.contexts import Context, Contexts
from muster.cli.main import COMMANDS

PROGRAM = Path(sys.executable).with_name("muster")
NOUNS = [name for names in COMMANDS.values() for name in names]


def words(*typed):
    return [word for word, _ in completion.candidates(typed)]


def test_nouns_verbs_and_options_follow_each_other():
    assert words("") == words() == NOUNS
    assert words("jo") == ["job"]
    assert words("job", "st") == words("help", "job", "st") == ["start", "stop"]
    assert words("job", "start", "nightly", "--wa") == ["--wait"]
    assert {"-h", "--help"} <= set(words("run", "show", "-"))
    assert words("jbo", "st") == []


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["run", "list", "-o", "js"], ["json", "jsonc"]),
        (["run", "list", "--output", "y"], ["yaml"]),
        (["run", "list", "--output=y"], ["--output=yaml"]),
        (["run", "list", "--output", "=", "y"], ["yaml"]),
        (["run", "list", "--output", "="], ["table", "json", "jsonc", "yaml", "tsv", "csv"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["config", "p"], ["print"]),
        (["backup", "x"], [completion.FILES]),
        (["job", "create", "x", "-f", ""], [completion.FILES]),
        (["job", "start", ""], []),
        (["job", "start", "x", "--timeout", ""], []),
    ],
)
def test_values_are_fixed_words_or_files_or_nothing_that_is_known(typed, expected):
    assert words(*typed) == expected


def test_contexts_are_completed_by_name():
    contexts.write(Contexts("prod", {"prod": Context("http://x"), "test": Context("http://y")}))

    assert words("job", "list", "--context", "") == ["prod", "test"]


def test_every_command_and_option_can_be_completed():
    for noun in NOUNS:
        assert noun in words(noun[:1])
        for verb in words(noun, "")[:1]:
            is_command = noun != "help" and verb != completion.FILES
            assert not is_command or "--help" in words(noun, verb, "-")


def test_only_the_module_of_the_noun_is_imported():
    program = (
        "import sys; from muster.cli.main import main; main(['__complete', 'bash', 'target', 'h']);"
        "print(*[m for m in sys.modules if m in ('httpx', 'asyncpg', 'muster.cli.job')], '.')"
    )

    run = [sys.executable, "-P", "-c", program]
    assert subprocess.run(run, capture_output=True, text=True).stdout == "history\n.\n"


def test_each_shell_gets_its_form(capsys):
    for shell in completion.SCRIPTS:
        completion.complete([shell, "job", "del"])

    about = "Delete a job; its history is hidden"
    assert capsys.readouterr().out == f"delete\ndelete:{about}\ndelete\t{about}\n"


@pytest.mark.parametrize("shell", completion.SCRIPTS)
def test_the_script_of_each_shell_asks_and_is_registered(muster, shell):
    code, script, _ = muster("completion", shell)

    assert code == 0
    assert f"__complete {shell} " in script and completion.FILES in script
    assert re.search(r"^(complete|\s*compdef) .*muster", script, re.MULTILINE)
    assert muster("completion", "csh")[0] == 1


def completed(line, folder):
    """What a real bash on a terminal makes of a line when Tab is pressed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        environ = {
            "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
            "TERM": "dumb",
            "HOME": str(folder),
        }
        os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environ)
    shown = ""

    def read_until(mark):
        nonlocal shown
        end = time.monotonic() + 60
        while mark not in shown:
            assert time.monotonic() < end, f"{mark!r} is awaited in {shown!r}"
            if select.select([terminal], [], [], 1)[0]:
                shown += os.read(terminal, 4096).decode()

    try:
        os.write(terminal, b"source <(muster completion bash); echo rea''dy\n")
        read_until("ready")
        os.write(
            terminal, f"{line}\t\x01# \necho do''ne\n".encode()
        )  # a comment in the end: it is not run
        read_until("done\r\n")
        return shown.partition("ready")[2]
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="bash is not installed")
def test_bash_completes_words_and_files(tmp_path):
    (tmp_path / "nightly-script.sql").write_text("select 1")

    assert "muster job delete" in completed("muster job del", tmp_path)
    assert "-f nightly-script.sql" in completed("muster job create x -f night", tmp_path)
    assert "--output=yaml" in completed("muster run list --output=y", tmp_path)
