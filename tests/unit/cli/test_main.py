import subprocess
import sys
from pathlib import Path

import pytest

from muster.cli import main as cli
from muster.cli import operators
from muster.core.version import VERSION
from muster.roles import process, up


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith("MUSTER_")]:
        monkeypatch.delenv(name)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["version"]) == 0
    assert capsys.readouterr().out == f"muster {VERSION}\n"


def test_effective_settings_are_printed_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_DATABASE_URL", "postgresql://u:canary@h/d")
    monkeypatch.setenv("MUSTER_LEASE", "45s")

    assert cli.main(["config", "print"]) == 0

    output = capsys.readouterr().out
    assert "MUSTER_LEASE=45s\n" in output
    assert "MUSTER_DATABASE_URL=***\n" in output
    assert "MUSTER_REDIS_URL=\n" in output
    assert "canary" not in output


def test_an_empty_target_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["up", "--allow-target", "", "--listen", "127.0.0.1:0"])

    assert "argument --allow-target: it is empty" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["config", "print"], ["api"], ["fsm"]])
def test_wrong_settings_are_one_clear_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.setenv("MUSTER_LEASE", "soon")

    assert cli.main(command) == 1

    error = capsys.readouterr().err
    assert "MUSTER_LEASE" in error and "MUSTER_DATABASE_URL is required" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("command", [["config", "print"], ["api"], ["fsm"]])
def test_a_wrong_rule_about_targets_is_refused_like_any_wrong_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.setenv("MUSTER_DATABASE_URL", "postgresql://u@h/d")
    monkeypatch.setenv("MUSTER_TARGET_ALLOW", "not a cidr!!")

    assert cli.main(command) == 1

    told = "MUSTER_TARGET_ALLOW: 'not a cidr!!' is neither a CIDR nor a host pattern"
    assert told in capsys.readouterr().err


def test_up_gets_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[up.Options] = []
    monkeypatch.setattr(up, "main", lambda options: given.append(options) or 0)
    monkeypatch.setattr(operators, "default_data_dir", lambda: Path("/default"))

    assert cli.main(["up"]) == 0
    assert cli.main(["up", "--data-dir", "d", "--listen", "h:1", "--ready-file", "r", "--tls"]) == 0

    assert given == [
        up.Options(Path("/default"), "127.0.0.1:8080", None, tls=False),
        up.Options(Path("d"), "h:1", Path("r"), tls=True),
    ]


def test_every_role_of_up_is_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[str, Path | None]] = []
    monkeypatch.setattr(process, "main", lambda role, ready: started.append((role, ready)) or 0)

    for role in up.ROLES:
        assert cli.main([role, "--ready-file", "x"]) == 0

    assert started == [(role, Path("x")) for role in up.ROLES]
    assert set(operators.ROLES) >= set(up.ROLES)


def imported(program: str) -> set[str]:
    run = [sys.executable, "-P", "-c", f"{program}\nimport sys; print(*sys.modules)"]
    return set(subprocess.run(run, capture_output=True, text=True, check=True).stdout.split())


def test_a_command_imports_its_own_module_alone() -> None:
    loaded = imported(
        "from muster.cli.main import parser; parser().parse_args(['target', 'history', 's/d'])"
    )
    nouns = {module for names in cli.COMMANDS.values() for module, _ in names.values()}

    assert {name for name in nouns if f"muster.cli.{name}" in loaded} == {"target"}
    assert not loaded & {"litestar", "asyncpg", "httpx", "muster.roles.up"}


def test_the_help_names_every_command_below_its_heading_and_operators_last() -> None:
    text = cli.parser().format_help()

    at = 0
    for heading, names in cli.COMMANDS.items():
        at = text.index(f"\n{heading}:\n", at)
        for name, (_, about) in names.items():
            at = text.index(f"\n  {name} ", at)
            assert about in text[at:].splitlines()[1]
    assert list(cli.COMMANDS)[-1] == "for operators"
    assert text.index("exit codes:") > at


@pytest.mark.parametrize("words", [[], ["job"], ["job", "create"], ["exec"], ["up"]])
def test_help_prints_what_dash_dash_help_prints(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printed = []
    for each in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit) as exit:
            cli.main(each)
        assert exit.value.code == 0
        printed.append(capsys.readouterr().out)

    assert printed[0] == printed[1]
    assert " ".join(["usage: muster", *words]) in printed[0]


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["help", "jbo"], "there is no command 'jbo'; did you mean job"),
        (["help", "job", "crate"], "'muster job' has no 'crate'; did you mean create"),
        (["jbo", "create"], "there is no command 'jbo'; did you mean job"),
        (["job", "crate"], "'muster job' has no 'crate'; did you mean create"),
    ],
)
def test_a_wrong_noun_or_verb_gets_the_nearest(
    words: list[str], near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit:
        cli.main(words)

    assert exit.value.code == 1
    assert near in capsys.readouterr().err
