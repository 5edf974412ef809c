import io
import os
import sys
from time import tzset

import httpx
import pytest

from muster.cli import client
from muster.cli import run_watch
from muster.cli import main as cli
from tests.unit.cli.fake_rest import Rest


class Time:
    """Passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("MUSTER_") or name == "NO_COLOR"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TZ", "UTC")
    tzset()
    yield
    monkeypatch.undo()
    tzset()


@pytest.fixture
def time(monkeypatch):
    made = Time()
    for module in (client, run_watch):
        monkeypatch.setattr(module, "sleep", made.sleep)
        monkeypatch.setattr(module, "monotonic", lambda: made.now)
    return made


@pytest.fixture
def rest(monkeypatch, time):
    """The outside world: an API of recorded answers behind the real client."""
    monkeypatch.setenv("MUSTER_TOKEN", "a-token")
    made = Rest()

    def connect(url, token, ca_file=None):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=url, headers=headers, transport=made.transport())

    monkeypatch.setattr(client, "connect", connect)
    return made


@pytest.fixture
def muster(rest, capsys):
    """Runs a command: exit code, stdout, stderr."""

    def run(*words):
        try:
            code = cli.main(words)
        except SystemExit as exit:
            code = exit.code
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


@pytest.fixture
def terminal(monkeypatch):
    """stdin that answers, stdout and stderr as a terminal; `answer` is what is typed."""

    def sit(answer=""):
        streams = {"stdin": Terminal(answer), "stdout": Terminal(), "stderr": Terminal()}
        for name, stream in streams.items():
            monkeypatch.setattr(sys, name, stream)
        return streams

    return sit
