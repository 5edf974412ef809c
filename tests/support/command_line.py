"""The command line as a user has it, against an API that is really running.

command_line = CommandLine(monkeypatch, capsys, url, token)
command_line("server", "list")                    what it printed; fails when it did not exit with 0
command_line("server", "show", "no", code=6)      stdout and stderr of a command that has to exit with 6
command_line.json("server", "show", "eu1")        the document of -o json
"""

import json
from typing import Any

import pytest

from muster.cli import main as cli


VOLATILE = {"etag", "systemData"}


class CommandLine:
    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        url: str,
        token: str,
    ) -> None:
        monkeypatch.setenv("MUSTER_URL", url)
        monkeypatch.setenv("MUSTER_TOKEN", token)
        monkeypatch.delenv("MUSTER_ACCOUNT", raising=False)
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        try:
            exit_code: Any = cli.main(words)
        except SystemExit as wrong:
            exit_code = wrong.code
        printed = self._capsys.readouterr()
        assert exit_code == code, f"muster {' '.join(words)}: {printed.out}{printed.err}"
        return printed.out if code == 0 else printed.out + printed.err

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "-o", "json"))

    def rows(self, *words: str) -> list[dict[str, str]]:
        """Of -o tsv, by column."""
        columns, *rows = [line.split("\t") for line in self(*words, "-o", "tsv").splitlines()]
        return [dict(zip(columns, row, strict=True)) for row in rows]


def differences(before: Any, after: Any, way: str = "") -> set[str]:
    """Places where two documents of a resource differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = (before.keys() | after.keys()) - VOLATILE
        return {
            place
            for name in names
            for place in differences(before.get(name), after.get(name), f"{way}.{name}".strip("."))
        }
    return set() if before == after else {way}
