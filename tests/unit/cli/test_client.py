"""How the API is reached, asked again and understood."""

import httpx
import pytest

import argparse
import json
import re

from muster.cli import client
from muster.cli import main as cli
from muster.cli import contexts
from muster.cli.client import Refused
from tests.unit.cli.fake_rest import (
    ACCOUNT,
    SERVER,
    SUBSCRIPTION,
    a_server,
    accepted,
    an_account,
    listed,
    refusal,
)

JOBS = f"{ACCOUNT}/jobs"


def test_an_error_is_one_line_with_code_message_and_field(muster, rest):
    rest.on("GET", JOBS, refusal(400, "InvalidParameterValue", "It is\nnot so.", "properties.x"))

    code, out, err = muster("job", "list")

    assert (code, out) == (1, "")
    assert err == "muster: InvalidParameterValue: It is not so. (properties.x)\n"


def test_everything_wrong_is_told_in_one_line(muster, rest):
    details = [
        {"code": "A", "target": "a", "message": "One."},
        {"code": "B", "target": "b", "message": "Two."},
    ]
    rest.on("GET", JOBS, refusal(400, "A", "2 fields are wrong.", "a", details=details))

    _, _, err = muster("job", "list")

    assert err == "muster: A: a: One.; b: Two.\n"


@pytest.mark.parametrize(
    ("status", "expected"), [(401, 7), (403, 7), (404, 6), (400, 1), (409, 1), (500, 1)]
)
def test_a_refusal_has_its_exit_code(muster, rest, status, expected):
    rest.on("GET", JOBS, refusal(status, "Code", "No."))

    assert muster("job", "list")[0] == expected


def test_an_answer_that_is_no_arm_error_is_told_too(muster, rest):
    rest.on("GET", JOBS, httpx.Response(502, content=b"<html>"))

    assert muster("job", "list")[::2] == (1, "muster: the API answered 502\n")


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_api_is_asked_again_when_it_says_so(muster, rest, time, status):
    rest.on("GET", JOBS, refusal(status, "Busy", "Later."), listed())

    assert muster("job", "list")[0] == 0
    assert time.slept == [7]


def test_a_write_that_is_sent_again_keeps_its_key(muster, rest):
    rest.on("POST", f"{JOBS}/nightly/start", refusal(503, "Busy", "Later."), httpx.ReadError("gone"),
            refusal(400, "No", "No."))  # fmt: skip

    muster("job", "start", "nightly")

    keys = [each.headers["idempotency-key"] for each in rest.requests if each.method == "POST"]
    assert len(keys) == 3 and len(set(keys)) == 1


def test_nobody_waits_for_ever(muster, rest, time):
    rest.on("GET", JOBS, refusal(503, "NodeAgentUnavailable", "Later."))

    code, _, err = muster("job", "list")

    assert (code, err) == (1, "muster: NodeAgentUnavailable: Later.\n")
    assert sum(time.slept) >= client.PATIENCE


def test_an_api_that_never_answered_is_not_waited_for(muster, rest, time):
    rest.on("GET", "/subscriptions", httpx.ConnectError("refused"))

    code, _, err = muster("job", "list")

    assert code == 1
    assert err.startswith("muster: http://127.0.0.1:8080 does not answer: refused. `muster up` ")
    assert time.slept == []


def test_lists_go_on_behind_their_links_at_the_address_that_works(muster, rest):
    rest.on(
        "GET",
        JOBS,
        listed({"name": "a", "properties": {}}, next=f"{JOBS}/more?api-version=1&$skiptoken=x"),
    )
    rest.on("GET", f"{JOBS}/more", listed({"name": "b", "properties": {}}))

    _, out, _ = muster("job", "list", "-o", "tsv", "--url", "http://here:1")

    assert [line.split("\t")[0] for line in out.splitlines()] == ["name", "a", "b"]
    assert rest.requests[-1].url == f"http://here:1{JOBS}/more?api-version=1&$skiptoken=x"


def test_an_operation_is_followed_to_its_end(muster, rest):
    server, operation = f"{SERVER.rpartition('/')[0]}/new", "/op/1"
    rest.on(
        "GET", f"{SUBSCRIPTION}/resourceGroups", listed({"id": f"{SUBSCRIPTION}/resourceGroups/g1"})
    )
    rest.on("PUT", server, accepted(operation, {}))
    rest.on("GET", operation, {"status": "InProgress"}, {"status": "Succeeded"})
    rest.on("GET", server, {"id": server, "name": "new", "properties": {"state": "Ready"}})

    code, out, _ = muster("server", "add", "new", "--host", "db", "-o", "tsv")

    assert (code, out.splitlines()[1].split("\t")[0]) == (0, "new")


def test_an_operation_that_is_not_waited_for_is_printed(muster, rest):
    server, operation = f"{SERVER.rpartition('/')[0]}/new", "/op/1"
    started = {"name": "1", "status": "InProgress", "startTime": "2031-01-01T00:00:00.7Z"}
    rest.on("GET", operation, started)
    rest.on("PATCH", SERVER, accepted(operation, {}))
    rest.on("DELETE", SERVER, accepted(operation, {}))
    rest.on("PUT", server, accepted(operation, {}))
    rest.on(
        "GET", f"{SUBSCRIPTION}/resourceGroups", listed({"id": f"{SUBSCRIPTION}/resourceGroups/g1"})
    )

    for words in (
        ["add", "new", "--host", "db"],
        ["update", "fleet-1", "--port", "5433"],
        ["delete", "fleet-1", "--yes"],
    ):
        code, out, _ = muster("server", *words, "--no-wait")

        assert code == 0
        assert out.splitlines() == [
            "operation  status      started",
            "1          InProgress  2031-01-01T00:00:00Z",
            "It goes on by itself; muster operation wait 1 waits for it.",
        ]
    words = ["server", "delete", "fleet-1", "--yes", "--no-wait", "--query", "name", "-o", "tsv"]
    assert muster(*words)[1] == "1\n"


def test_what_an_account_stands_on_is_waited_for_in_any_case(muster, rest):
    control, account = f"{SERVER}/databases/jobs", f"{SERVER}/jobAgents/a"
    rest.on("PUT", control, accepted("/op/1", {}))
    rest.on(
        "GET", "/op/1", {"name": "1", "status": "InProgress"}, {"name": "1", "status": "Succeeded"}
    )
    rest.on("GET", control, httpx.Response(404, json={"error": {}}), {"name": "jobs"})
    rest.on("PUT", account, accepted("/op/2", {}))
    rest.on("GET", account, httpx.Response(404, json={"error": {}}))
    rest.on("GET", "/op/2", {"name": "2", "status": "InProgress"})

    words = ["account", "create", "a", "--database", "fleet-1/jobs", "--no-wait", "-o", "json"]
    code, out, err = muster(*words)

    assert (code, json.loads(out)["name"]) == (0, "2"), err


def test_an_operation_that_fails_is_an_error_like_any_other(muster, rest):
    server, operation = f"{SERVER.rpartition('/')[0]}/new", "/op/1"
    rest.on(
        "GET", f"{SUBSCRIPTION}/resourceGroups", listed({"id": f"{SUBSCRIPTION}/resourceGroups/g1"})
    )
    rest.on("PUT", server, accepted(operation, {}))
    rest.on(
        "GET",
        operation,
        {"status": "Failed", "error": {"code": "TargetUnreachable", "message": "No way."}},
    )

    for more in ([], ["--no-wait"]):
        assert muster("server", "add", "new", "--host", "db", *more)[::2] == (
            1,
            "muster: TargetUnreachable: No way.\n",
        )


def test_an_operation_that_has_ended_is_not_said_to_go_on(muster, rest):
    rest.on("DELETE", SERVER, accepted("/op/1", {}))
    rest.on("GET", "/op/1", {"name": "1", "status": "Succeeded"})

    code, out, _ = muster("server", "delete", "fleet-1", "--yes", "--no-wait")

    assert (code, "It goes on" in out) == (0, False), out


CREATED = {  # collection in a path → a create, where what it makes is there
    "subscriptions": (["subscription", "create", "x"], "/subscriptions/x"),
    "resourceGroups": (["resource-group", "create", "x"], f"{SUBSCRIPTION}/resourceGroups/x"),
    "databases": (["database", "create", "fleet-1/x"], f"{SERVER}/databases/x"),
    "elasticPools": (["pool", "create", "fleet-1/x"], f"{SERVER}/elasticPools/x"),
    "locks": (
        ["lock", "create", "x", "--level", "ReadOnly", "--scope", "/"],
        "/providers/Microsoft.Authorization/locks/x",
    ),
    "jobAgents": (["account", "create", "x", "--database", "fleet-1/d"], f"{SERVER}/jobAgents/x"),
    "jobs": (["job", "create", "x", "-g", "g", "-c", "select 1"], f"{ACCOUNT}/jobs/x"),
    "steps": (["step", "add", "j", "x", "-g", "g", "-c", "select 1"], f"{ACCOUNT}/jobs/j/steps/x"),
    "targetGroups": (["group", "create", "x", "--server", "fleet-1"], f"{ACCOUNT}/targetGroups/x"),
}


@pytest.mark.parametrize("collection", CREATED)
def test_a_name_that_is_there_already_is_refused_with_what_exists_for_it(muster, rest, collection):
    words, path = CREATED[collection]
    rest.on("GET", SERVER, a_server() | {"location": "local"})
    rest.on("GET", f"{SERVER}/databases/d", {"name": "d"})
    rest.on("GET", f"{ACCOUNT}/jobs/j/steps", listed())
    rest.on("PUT", path, refusal(412, "PreconditionFailed", "It exists."))

    advice = client.INSTEAD[collection]
    assert muster(*words) == (1, "", f"muster: Exists: 'x' is there already; {advice}\n")
    assert rest.requests[-1].headers["if-none-match"] == "*"


@pytest.mark.parametrize("advice", client.INSTEAD.values())
def test_what_is_advised_exists(muster, advice):
    command, *others = re.findall(r"(?:muster |and )([a-z-]+ [a-z-]+)", advice)
    for each in (command, *others):
        assert muster(*each.split(), "--help")[0] == 0
    noun = command.split()[0]
    create = [noun, "add" if noun == "server" else "create", "--help"]
    assert ("--replace" in muster(*create)[1]) == ("--replace" in advice)


def token_for(url):
    return contexts.place(argparse.Namespace(url=url)).token


def test_the_token_comes_from_the_environment_or_a_file(monkeypatch, tmp_path):
    file = tmp_path / "token"
    file.write_text("from-a-file\n")

    monkeypatch.setenv("MUSTER_TOKEN_FILE", str(file))
    assert token_for("https://far.example") == "from-a-file"
    monkeypatch.setenv("MUSTER_TOKEN", "plain")
    assert token_for("https://far.example") == "plain"


def test_the_token_of_this_machine_stays_on_it(monkeypatch, tmp_path):
    kept = tmp_path / "xdg" / "muster" / "secrets" / "token"
    kept.parent.mkdir(parents=True)
    kept.write_text("local")

    assert token_for("http://127.0.0.1:8080") == token_for("http://localhost:1") == "local"
    with pytest.raises(Refused, match="MUSTER_TOKEN"):
        token_for("https://far.example")


@pytest.mark.parametrize("words", [["job", "list"], ["account", "list"]])
def test_without_a_token_the_user_is_told_what_to_set(capsys, words):
    assert cli.main(words) == 1
    assert "set MUSTER_TOKEN or MUSTER_TOKEN_FILE" in capsys.readouterr().err


def test_a_token_file_that_is_not_there_is_no_traceback(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("MUSTER_TOKEN_FILE", str(tmp_path / "none"))

    assert cli.main(["job", "list"]) == 1
    assert "the token can't be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [["job"], ["job", "create", "x"], ["nonsense"], ["run", "wait", "x", "--timeout", "soon"], []],
)
def test_a_wrong_command_is_one_line_and_exit_1(muster, words):
    code, out, err = muster(*words)

    assert (code, out) == (1, "")
    assert err.startswith("muster: ") and err.count("\n") == 1 and "--help" in err


def test_help_tells_the_exit_codes(muster):
    for words in (["--help"], ["exec", "--help"], ["run", "wait", "--help"]):
        code, out, _ = muster(*words)
        assert code == 0
        assert "5    the wait timed out" in out and "8    halted" in out


def test_names_are_quoted(muster, rest):
    rest.on("GET", f"{ACCOUNT}/jobs/a b%20c", {"name": "a b%20c", "properties": {}})
    rest.on("GET", f"{ACCOUNT}/jobs/a b%20c/steps", listed())
    rest.on("GET", f"{ACCOUNT}/jobs/a b%20c/nextRuns", listed())

    assert muster("job", "show", "a b%20c", "--account", an_account()["id"])[0] == 0
    assert rest.requests[0].url.raw_path.startswith(f"{ACCOUNT}/jobs/a%20b%2520c?".encode())


@pytest.mark.parametrize("character", ["\u2028", "\x85", "ä"])
def test_only_a_line_feed_ends_a_line_of_a_stream(character):
    text = f"data: a{character}b\n\ndata: c\n".encode()

    parts = (text[at : at + 1] for at in range(len(text)))
    assert list(client.text_lines(parts)) == [f"data: a{character}b", "", "data: c"]


def test_events_are_read_as_lines_that_end_with_a_line_feed(rest):
    rest.on("GET", "/events", httpx.Response(200, content="data: a\u2028b\n\n".encode()))
    http = httpx.Client(
        base_url="http://api",
        headers={"Authorization": "Bearer a-token"},
        transport=rest.transport(),
    )

    assert list(client.Api(http).lines("/events")) == ["data: a\u2028b", ""]
