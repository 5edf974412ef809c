"""Roles, locks, tokens, the audit, providers and operations at the command line, against a running API."""

import json
from uuid import uuid4

import pytest

from tests.support.command_line import CommandLine, differences
from tests.support.running_api import TOKEN, serve_in_thread


@pytest.fixture
def running(settings):
    with serve_in_thread(settings) as running:
        yield running


@pytest.fixture
def muster(running, monkeypatch, capsys, targets, tmp_path):
    """With one registered server."""
    made = CommandLine(monkeypatch, capsys, running.url, TOKEN)
    (tmp_path / "password").write_text(targets.administrator.password)
    made(
        "server", "add", "eu1", "--host", "127.0.0.1", "--port", str(targets.port), "--ssl-mode", "disable",
        "--admin", targets.administrator.name, "--admin-password-file", str(tmp_path / "password"),
        "--subscription", "s1", "--resource-group", "g1", "--create",
    )  # fmt: skip
    return made


def test_a_role_is_given_and_taken_away_at_each_scope(muster):
    roles = {each["role"]: each["id"] for each in muster.rows("role", "definition", "list")}
    assert set(roles) == {"Owner", "Contributor", "Reader", "Job Operator"}
    assert "allows */read" in muster("role", "definition", "show", "job-operator")
    assert "did you mean Reader?" in muster("role", "definition", "show", "Raeder", code=6)

    name = str(uuid4())
    muster(
        "role",
        "assignment",
        "create",
        "--role",
        "Reader",
        "--principal",
        "anna",
        "--server",
        "eu1",
        "--name",
        name,
    )
    muster(
        "role", "assignment", "create", "--role", roles["Owner"], "--principal", "ops", "--principal-type", "group",
        "--description", "On call", "--resource-group", "g1",
    )  # fmt: skip
    muster(
        "role", "assignment", "create", "--role", "Reader", "--principal", "anna", "--scope", "/"
    )

    rows = muster.rows("role", "assignment", "list", "--principal", "anna")
    assert {(each["role"], each["scope"]) for each in rows} == {
        ("Reader", "server eu1"),
        ("Reader", "/"),
    }
    [group] = [
        each
        for each in muster.rows("role", "assignment", "list", "--server", "eu1")
        if each["principal"] == "ops"
    ]
    assert (group["role"], group["type"], group["scope"]) == ("Owner", "Group", "resource-group g1")
    [shown] = muster.rows("role", "assignment", "show", name, "--server", "eu1")
    assert shown["principal"] == "anna"

    muster("role", "assignment", "delete", name, "--yes")
    assert [
        each["scope"] for each in muster.rows("role", "assignment", "list", "--principal", "anna")
    ] == ["/"]
    gone = ("role", "assignment", "delete", "--role", "Reader", "--principal", "anna", "--yes")
    assert "there is no role assignment of Reader to anna at server eu1" in muster(
        *gone, "--server", "eu1", code=6
    )
    muster(*gone, "--scope", "/")
    assert muster.rows("role", "assignment", "list", "--principal", "anna") == []


SCOPES = {
    ("--scope", "/"): "/",
    ("--subscription", "s1"): "subscription s1",
    ("--resource-group", "g1"): "resource-group g1",
    ("--server", "eu1"): "server eu1",
    ("--pool", "eu1/gold"): "pool eu1/gold",
    ("--scope", "/subscriptions/s1/resourceGroups/g1/"): "resource-group g1",
}


def test_a_lock_holds_at_its_scope(muster):
    muster("pool", "create", "eu1/gold", "--pattern", "gold_*")

    for scope, shown in SCOPES.items():
        muster("lock", "create", "keep", "--level", "can-not-delete", "--notes", "Why.", *scope)
        rows = muster.rows("lock", "list", *scope)
        assert [(each["name"], each["scope"]) for each in rows] == [("keep", shown)]
        before = muster.json("lock", "show", "keep", *scope)
        muster("lock", "update", "keep", "--level", "read-only", *scope)
        after = muster.json("lock", "show", "keep", *scope)
        assert differences(before, after) == {"properties.level"}
        again = ("lock", "create", "keep", "--level", "ReadOnly", *scope)
        assert "is there already" in muster(*again, code=1)
        muster("lock", "update", "keep", "--level", "can-not-delete", "--reset", "notes", *scope)
        assert "Lock" in muster("pool", "delete", "eu1/gold", "--yes", code=1)
        muster("lock", "delete", "keep", "--yes", *scope)

    muster("pool", "delete", "eu1/gold", "--yes")


def test_a_token_is_shown_once_and_works_as_far_as_its_role(muster, running, monkeypatch):
    made = muster.json(
        "token", "create", "deploy", "--expires", "90d", "--description", "CI", "--server", "eu1"
    )

    secret, principal = (made["properties"][each] for each in ("token", "principalId"))
    assert secret not in muster("token", "list") + json.dumps(
        muster.json("token", "show", "deploy")
    )
    [row] = muster.rows("token", "list")
    assert (row["scope"], row["description"], row["principal"]) == ("server eu1", "CI", principal)
    with monkeypatch.context() as other:
        other.setenv("MUSTER_TOKEN", secret)
        muster("server", "show", made["properties"]["scope"], code=7)
    muster("role", "assignment", "create", "--role", "Reader", "--principal", principal,
           "--principal-type", "service-principal", "--server", "eu1")  # fmt: skip
    with monkeypatch.context() as other:
        other.setenv("MUSTER_TOKEN", secret)
        muster("server", "show", made["properties"]["scope"])
    assert "ServiceTokenExists" in muster("token", "create", "deploy", code=1)
    muster("token", "delete", "deploy", "--yes")
    with monkeypatch.context() as other:
        other.setenv("MUSTER_TOKEN", secret)
        muster("server", "list", code=7)


def test_the_audit_is_filtered(muster):
    muster("pool", "create", "eu1/gold")
    [event] = muster.rows(
        "audit", "list", "--operation", "Microsoft.Sql/servers/elasticPools/write"
    )
    assert (event["caller"], event["status"]) == ("local", "Succeeded")

    assert event in muster.rows("audit", "list", "--correlation", event["correlation"])
    assert event in muster.rows(
        "audit", "list", "--resource-group", "g1", "--since", "1h", "--provider", "Microsoft.Sql"
    )
    assert muster.rows("audit", "list", "--resource", event["resource"], "--until", "2h") == []
    assert muster.rows("audit", "list", "--status", "Denied", "--caller", "local") == []
    assert len(muster.rows("audit", "list", "--top", "2")) == 2
    assert len(muster.rows("audit", "list", "--top", "0")) > 2


def test_a_provider_is_registered(muster):
    states = {each["namespace"]: each["state"] for each in muster.rows("provider", "list")}
    assert states["Microsoft.Sql"] == "Registered"
    muster("subscription", "create", "s2")
    muster("provider", "unregister", "Microsoft.Sql", "--subscription", "s2")
    assert (
        muster.rows("provider", "show", "microsoft.sql", "--subscription", "s2")[0]["state"]
        == "Unregistered"
    )
    assert (
        muster.rows("provider", "register", "Microsoft.Sql", "--subscription", "s2")[0]["state"]
        == "Registered"
    )
    rights = {each["right"] for each in muster.rows("provider", "operations")}
    assert "Microsoft.Sql/servers/useAsTarget/action" in rights


def test_an_operation_is_found_by_id_and_by_url(muster, running):
    server = muster.json("server", "show", "eu1")["id"]
    with running.client() as http:
        begun = http.put(f"{server}/databases/one", json={"location": "local"}).raise_for_status()
    url = begun.headers["azure-asyncoperation"]
    id = url.partition("?")[0].rpartition("/")[2]

    [row] = muster.rows("operation", "wait", url, "--timeout", "60")
    assert (row["operation"], row["status"], row["resource"]) == (
        id,
        "Succeeded",
        f"{server}/databases/one",
    )
    assert muster.rows("operation", "show", id) == [row]
    assert muster.json("operation", "result", id)["name"] == "one"
    assert "there is no operation" in muster("operation", "show", str(uuid4()), code=6)
    assert "neither an operation's id nor its URL" in muster("operation", "show", "one", code=1)
