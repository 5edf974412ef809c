"""The shell in which commands of pages are run: exit codes, what commands set, what they read and print."""

import signal

import pytest

from tests.support.shell import commands, shell


def test_exit_codes_and_output_are_those_of_the_command(tmp_path):
    with shell(tmp_path) as bash:
        ran = bash.run("printf one; echo two >&2; (exit 3)")

        assert (ran.code, ran.output) == (3, "onetwo")
        with pytest.raises(AssertionError, match="ended with 1"):
            bash.block("true\nfalse\n")
        bash.block("true\nfalse # known\n", codes={"# known": 1})


def test_what_a_command_sets_stays_and_each_reads_what_is_typed(tmp_path):
    with shell(tmp_path, GIVEN="g") as bash:
        bash.block("export A=$GIVEN; B=b\nf() { echo f; }\ncd /")

        assert bash.run('echo "$A$B" $(f) $PWD; cat', typed="t").output == "gb f /\nt"


def test_lines_are_joined_until_the_command_is_complete():
    text = "# nothing\n\nfor x in 1 2; do\n  echo $x\ndone\necho a \\\n  b  # c\necho 'd\ne'\n"

    assert list(commands(text)) == [
        "for x in 1 2; do\n  echo $x\ndone",
        "echo a \\\n  b  # c",
        "echo 'd\ne'",
    ]


def test_a_command_that_does_not_end_is_named_and_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.support.shell.ENOUGH", 0.2)

    with pytest.raises(AssertionError, match="'sleep 600' did not end"), shell(tmp_path) as bash:
        bash.run("sleep 600")

    assert bash.process.returncode == -signal.SIGKILL
