"""Accounts and what is in them at the command line, against real processes: created, updated, shown, deleted by commands alone."""

import pytest

from tests.support.accounts import start_control_plane
from tests.support.command_line import CommandLine, differences
from tests.support.running_api import TOKEN

pytestmark = [pytest.mark.newest, pytest.mark.deep]
URL = "https://alerts.example.org/muster"


@pytest.fixture
def control_plane(settings, targets, tmp_path):
    with start_control_plane(settings, targets, tmp_path / "launcher") as running:
        yield running


@pytest.fixture
def muster(control_plane, monkeypatch, capsys, tmp_path):
    """With one account and a credential in it."""
    made = CommandLine(monkeypatch, capsys, control_plane.plane.url, TOKEN)
    control_plane.database("a")
    [name] = [each["name"] for each in made.rows("database", "list")]
    made(
        "account",
        "create",
        "a",
        "--database",
        f"srv/{name}",
        "--max-attempts-in-a-row",
        "3",
        "--run-attempts",
        "on",
    )
    (tmp_path / "password").write_text("a password\n")
    made(
        "credential", "set", "login", "--username", "u", "--password-file", str(tmp_path / "password"),
        "--server", "srv",
    )  # fmt: skip
    return made


def test_what_an_account_has_lives_by_commands(control_plane, muster, tmp_path):
    an_account_keeps_what_is_not_named(muster)
    a_credential_keeps_what_is_not_named(control_plane, muster)
    a_group_changes_member_by_member(muster)
    a_private_endpoint_is_decided(muster)
    a_webhook_keeps_what_is_not_named(muster, tmp_path)

    doors = {each["door"] for each in muster.rows("account", "activity", "--top", "0")}
    assert "rest" in doors
    first, *_ = muster.rows("account", "activity", "--door", "rest", "--top", "1")
    assert "webhook" in first["action"].lower()
    assert muster.rows("account", "history")[0]["to"] == "reserving"
    muster("account", "delete", "a", "--drop-schema", "--yes")
    assert muster.rows("account", "list") == []


def an_account_keeps_what_is_not_named(muster):
    muster(
        "account", "update", "--default-credential", "login", "--halt-after-same-errors", "7", "--auto-disable", "30/7",
        "--tag", "a=1", "--tag", "b=2",
    )  # fmt: skip
    before = muster.json("account", "show")

    muster(
        "account",
        "update",
        "--capacity",
        "150",
        "--remove-tag",
        "a",
        "--max-attempts-with-progress",
        "9",
    )

    after = muster.json("account", "show")
    places = {
        "sku.name", "sku.capacity", "tags.a", "properties.runAttempts.maxWithProgress",
    }  # fmt: skip
    moving = "properties.instance"
    assert {each for each in differences(before, after) if not each.startswith(moving)} == places
    assert after["properties"]["runAttempts"]["maxSuccessiveWithoutProgress"] == 3
    muster("account", "update", "--reset", "run-attempts", "--reset", "default-credential")
    last = muster.json("account", "show")["properties"]
    assert "runAttempts" not in last and "defaultCredential" not in last
    assert last["haltAfterConsecutiveSameError"] == 7


def a_credential_keeps_what_is_not_named(control_plane, muster):
    before = muster.json("credential", "show", "login")
    secret = "select secret from jobs_internal.credential"
    kept = stored(control_plane, secret)

    muster("credential", "update", "login", "--username", "other")

    after = muster.json("credential", "show", "login")
    assert differences(before, after) == {"properties.username"}
    assert stored(control_plane, secret) == kept, "the password stays"
    muster("credential", "update", "login", "--reset", "server")
    assert "servers" not in muster.json("credential", "show", "login")["properties"] or (
        muster.json("credential", "show", "login")["properties"]["servers"] == ["*"]
    )
    assert "nothing to change" in muster("credential", "update", "login", code=1)
    muster("credential", "delete", "login", "--yes")
    assert "there is no credential 'login'" in muster("credential", "show", "login", code=6)


def stored(control_plane, query):
    return control_plane.control("a", query)


def a_group_changes_member_by_member(muster):
    muster(
        "group",
        "create",
        "tenants",
        "--server",
        "srv",
        "--exclude-database",
        "srv/Old",
        "--database",
        "srv/one",
    )
    before = muster.json("group", "show", "tenants")["properties"]["members"]

    muster("group", "add", "tenants", "--exclude-database", "srv/two")
    after = muster.json("group", "show", "tenants")["properties"]["members"]
    assert after[:3] == before and len(after) == 4
    assert "no member 'exclude SqlDatabase" in muster(
        "group", "remove", "tenants", "--exclude-database", "srv/old", code=6
    )
    muster("group", "remove", "tenants", "--exclude-database", "SRV/Old", "--database", "srv/one")
    last = muster.json("group", "show", "tenants")["properties"]["members"]
    assert last == [after[0], after[3]]
    muster("group", "create", "tenants", "--replace", "--database", "srv/one")
    assert [
        each["databaseName"]
        for each in muster.json("group", "show", "tenants")["properties"]["members"]
    ] == ["one"]
    muster("group", "delete", "tenants", "--yes")
    assert muster.rows("group", "list") == []


def a_private_endpoint_is_decided(muster):
    muster("private-endpoint", "create", "to-srv", "--server", "srv")
    [row] = muster.rows("private-endpoint", "list")
    assert (row["name"], row["server"], row["status"]) == ("to-srv", "srv", "Pending")
    assert muster.rows("private-endpoint", "reject", "to-srv")[0]["status"] == "Rejected"
    assert muster.rows("private-endpoint", "approve", "to-srv")[0]["status"] == "Approved"
    assert muster.rows("private-endpoint", "show", "to-srv")[0]["status"] == "Approved"
    muster("private-endpoint", "delete", "to-srv", "--yes")
    assert muster.rows("private-endpoint", "list") == []


def a_webhook_keeps_what_is_not_named(muster, tmp_path):
    (tmp_path / "secret").write_text("a secret of at least 16 characters\n")
    muster(
        "webhook", "create", "ops", "--to", URL, "--event", "failed", "--event", "late", "--job", "nightly",
        "--max-attempts", "3", "--secret-file", str(tmp_path / "secret"),
    )  # fmt: skip
    before = muster.json("webhook", "show", "ops")

    muster("webhook", "update", "ops", "--disable", "--reset", "max-attempts")

    after = muster.json("webhook", "show", "ops")
    assert differences(before, after) == {"properties.enabled", "properties.maxAttempts"}
    muster("webhook", "update", "ops", "--enable", "--event", "halted", "--reset", "job")
    last = muster.json("webhook", "show", "ops")["properties"]
    assert (last["enabled"], last["events"], last["jobs"]) == (True, ["halted"], [])
    muster("webhook", "delete", "ops", "--yes")
    assert muster.rows("webhook", "list") == []
