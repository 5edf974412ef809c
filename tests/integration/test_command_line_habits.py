"""Habits of the command line against a running API: logging in, and not waiting."""

import io
import json
import sys
import time

import pytest

from muster.cli import main as cli
from tests.support.running_api import TOKEN, serve_in_thread


@pytest.fixture
def running(settings):
    with serve_in_thread(settings) as running:
        yield running


@pytest.fixture
def muster(running, monkeypatch, tmp_path, capsys):
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_TOKEN_FILE", "MUSTER_CONTEXT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*words, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = cli.main(words)
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def test_who_has_logged_in_needs_no_environment(muster, running):
    assert "no token: muster login" in muster("subscription", "list", "--url", running.url)[1]
    code, printed = muster("login", running.url, stdin="not a token")
    assert code == 7 and "InvalidAuthenticationToken" in printed
    assert muster("context", "list", "-o", "tsv")[1].count("\n") == 1

    assert muster("login", running.url, stdin=f"{TOKEN}\n")[0] == 0

    assert muster("subscription", "create", "prod")[0] == 0
    assert muster("subscription", "list", "--query", "value[].subscriptionId", "-o", "tsv") == (0, "prod\n")  # fmt: skip
    assert TOKEN not in muster("context", "list", "-o", "json")[1]


def test_a_service_token_is_a_login_until_it_is_revoked(muster, running):
    scope = "/providers/Microsoft.Authorization"
    with running.client() as owner:
        properties = {"scope": "/", "expiresOn": "2099-01-01T00:00:00Z"}
        made = owner.put(f"{scope}/serviceTokens/ci", json={"properties": properties})
        assert made.status_code == 201, made.text
        token = made.json()["properties"]["token"]
        assert muster("login", running.url, "--name", "ci", stdin=token)[0] == 0
        assert "AuthorizationFailed" in muster("subscription", "list")[1], "known, and has no role"
        assert owner.delete(f"{scope}/serviceTokens/ci").is_success

    code, printed = muster("subscription", "list")

    assert code == 7 and "muster login --name ci gets in again" in printed


def test_a_delete_that_is_not_waited_for_goes_on_by_itself(muster, running):
    muster("login", running.url, stdin=TOKEN)
    muster("subscription", "create", "prod")
    muster("resource-group", "create", "fleet")

    code, printed = muster("resource-group", "delete", "fleet", "--yes", "--no-wait", "-o", "json")

    assert code == 0 and json.loads(printed)["status"] in {"InProgress", "Succeeded"}, printed
    end = time.monotonic() + 60
    while muster("resource-group", "show", "fleet")[0] != 6:
        assert time.monotonic() < end, "the group is there after a minute"
        time.sleep(0.2)
