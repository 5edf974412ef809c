"""`muster login`, `logout` and `context`: what is kept, who can read it, and which place a command goes to."""

import argparse
import io
import json
import stat
import sys

import pytest

from muster.cli import client, contexts
from muster.cli import main as cli
from muster.cli.client import Refused
from muster.cli.contexts import Context, Contexts
from tests.unit.cli.fake_rest import ACCOUNT, listed, refusal

FAR, OTHER = "https://muster.far:8443", "https://muster.other"


@pytest.fixture
def api(rest, monkeypatch):
    """Answers at any URL, and notes who called where with what."""
    calls = []
    connect = client.connect
    monkeypatch.delenv("MUSTER_TOKEN")

    def noted(url, token, ca_file=None):
        calls.append((url, token, ca_file and str(ca_file)))
        return connect(url, "a-token")

    monkeypatch.setattr(client, "connect", noted)
    rest.calls = calls
    rest.on("GET", f"{ACCOUNT}/jobs", listed())
    return rest


@pytest.fixture
def run(api, capsys, monkeypatch):
    def muster(*words, stdin=""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        try:
            code = cli.main(words)
        except SystemExit as exit:
            code = exit.code
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return muster


def test_a_login_is_kept_for_its_user_alone_and_used_from_then_on(run, api, tmp_path):
    code, out, _ = run("login", f"{FAR}/", "--account", "demo", stdin="secret\n")

    assert (code, out) == (0, f"Logged in to {FAR}. The context 'muster.far' is in use.\n")
    file = tmp_path / "config" / "muster" / "contexts.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert run("job", "list")[0] == 0
    assert api.calls == [(FAR, "secret", None)] * 2


def test_a_token_that_is_refused_is_not_kept(run, api):
    api.on("GET", "/subscriptions", refusal(401, "InvalidAuthenticationToken", "It is unknown."))

    code, out, err = run("login", FAR, stdin="wrong")

    assert (code, out) == (7, "")
    assert err == "muster: InvalidAuthenticationToken: It is unknown.\n"
    assert contexts.read() == Contexts()


def test_an_account_that_is_not_there_is_not_kept(run, api):
    code, _, err = run("login", FAR, "--account", "dmeo", stdin="t")

    assert (code, err) == (6, "muster: there is no account 'dmeo'; did you mean demo?\n")
    assert contexts.read() == Contexts()


def test_a_token_comes_from_a_terminal_without_an_echo_or_from_a_file(
    run, api, monkeypatch, tmp_path, terminal
):
    (tmp_path / "token").write_text("from-a-file\n")
    assert run("login", FAR, "--token-file", str(tmp_path / "token"))[0] == 0
    monkeypatch.setattr("getpass.getpass", lambda prompt: {"Token: ": "typed"}[prompt])
    terminal()
    assert cli.main(["login", FAR]) == 0

    assert [token for _, token, _ in api.calls] == ["from-a-file", "typed"]


def test_a_token_never_goes_to_the_url_of_another(run, api, monkeypatch):
    run("login", FAR, stdin="of-far")

    code, _, err = run("job", "list", "--url", OTHER)
    assert (code, err) == (1, "muster: no token: muster login, or set MUSTER_TOKEN or MUSTER_TOKEN_FILE\n")  # fmt: skip
    monkeypatch.setenv("MUSTER_URL", OTHER)
    assert run("job", "list")[0] == 1
    assert [url for url, *_ in api.calls] == [FAR]


def test_a_login_without_tls_is_warned_of(run):
    assert "without TLS" in run("login", "http://muster.far", stdin="t")[2]
    assert run("login", "http://127.0.0.1:8080", stdin="t")[2] == ""


def test_another_login_keeps_what_it_does_not_name(run, api, tmp_path):
    (tmp_path / "ca.pem").write_text("")
    run("login", FAR, "--account", "demo", "--ca-file", str(tmp_path / "ca.pem"), stdin="old")
    run("login", stdin="new")

    kept = contexts.read().by_name
    assert kept == {"muster.far": Context(FAR, "new", "demo", str(tmp_path / "ca.pem"))}
    assert api.calls[-1] == (FAR, "new", str(tmp_path / "ca.pem"))


def test_a_second_place_of_one_host_needs_a_name(run):
    run("login", FAR, stdin="t")

    code, _, err = run("login", "https://muster.far", stdin="t")

    assert code == 1 and f"the context 'muster.far' is of {FAR}" in err
    assert run("login", "https://muster.far", "--name", "second", stdin="t")[0] == 0
    assert set(contexts.read().by_name) == {"muster.far", "second"}


@pytest.fixture
def two(run):
    run("login", FAR, "--name", "prod", stdin="p")
    run("login", OTHER, "--name", "test", "--account", "demo", stdin="t")
    return run


def place(**options):
    found = contexts.place(argparse.Namespace(**{"url": None, "context": None} | options))
    return found.url, found.token, found.account


def test_options_win_over_the_environment_and_that_over_the_context(two, monkeypatch):
    assert place() == (OTHER, "t", "demo")
    assert place(context="prod") == (FAR, "p", None)
    monkeypatch.setenv("MUSTER_CONTEXT", "prod")
    assert place() == (FAR, "p", None)
    monkeypatch.setenv("MUSTER_ACCOUNT", "mine")
    assert place() == (FAR, "p", "mine")
    monkeypatch.setenv("MUSTER_URL", OTHER)
    monkeypatch.setenv("MUSTER_TOKEN", "e")
    assert place() == (OTHER, "e", "mine")
    assert place(context="test") == (OTHER, "t", "demo")
    assert place(url="https://third") == ("https://third", "e", "mine")
    with pytest.raises(Refused, match="--url or --context"):
        place(url=FAR, context="prod")
    with pytest.raises(Refused, match="there is no context 'prdo'; did you mean prod"):
        place(context="prdo")


def test_contexts_are_listed_shown_used_and_deleted_and_no_token_is_printed(two):
    rows = two("context", "list", "-o", "tsv")[1].splitlines()
    assert rows[1:] == [f"\tprod\t{FAR}\t\t\ttrue", f"*\ttest\t{OTHER}\tdemo\t\ttrue"]
    assert two("context", "use", "prod")[0] == 0
    shown = json.loads(two("context", "show", "-o", "json")[1])
    assert (shown["context"], shown["url"], shown["token_from"]) == ("prod", FAR, "context prod")
    assert two("context", "delete", "prod")[0] == 0
    assert two("context", "list", "--query", "value[].name", "-o", "tsv")[1] == "test\n"
    assert contexts.read().current is None
    code, _, err = two("context", "use", "tst")
    assert (code, err) == (6, "muster: there is no context 'tst'; did you mean test?\n")


def test_a_logout_forgets_the_token_and_keeps_the_place(two):
    assert two("logout")[0] == 0
    assert contexts.read().by_name["test"] == Context(OTHER, "", "demo")
    code, _, err = two("job", "list")
    assert code == 1 and "no token: muster login" in err
    assert two("logout", "prdo")[0] == 6


def test_a_token_that_has_expired_says_how_to_get_in_again(two, api):
    api.on("GET", "/subscriptions", refusal(401, "ExpiredAuthenticationToken", "It has expired."))

    code, _, err = two("account", "list")

    assert code == 7 and err.endswith("expired.; muster login --name test gets in again\n")


def test_a_file_that_is_damaged_is_one_line(two, tmp_path):
    (tmp_path / "config" / "muster" / "contexts.json").write_text("{")

    for words in (["job", "list"], ["context", "list"], ["login", FAR]):
        code, _, err = two(*words)
        assert code == 1 and "contexts.json can't be read" in err and err.count("\n") == 1
