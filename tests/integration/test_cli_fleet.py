"""The fleet at the command line, against a running API: created, updated, shown and deleted by commands alone."""

import pytest

from tests.support.command_line import CommandLine
from tests.support.running_api import TOKEN, serve_in_thread

VOLATILE = {"etag", "systemData"}


@pytest.fixture
def muster(settings, monkeypatch, capsys):
    with serve_in_thread(settings) as running:
        yield CommandLine(monkeypatch, capsys, running.url, TOKEN)


@pytest.fixture
def fleet(muster, targets, tmp_path):
    """With one registered server."""
    (tmp_path / "password").write_text(targets.administrator.password)
    muster(
        "server", "add", "eu1", "--host", "127.0.0.1", "--port", str(targets.port), "--ssl-mode", "disable",
        "--admin", targets.administrator.name, "--admin-password-file", str(tmp_path / "password"),
        "--subscription", "s1", "--resource-group", "g1", "--create",
    )  # fmt: skip
    return muster


def differences(before, after, way=""):
    """Places where two documents of a resource differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = (before.keys() | after.keys()) - VOLATILE
        return {
            place
            for name in names
            for place in differences(before.get(name), after.get(name), f"{way}.{name}".strip("."))
        }
    return set() if before == after else {way}


def test_a_subscription_and_a_resource_group_live_by_commands(muster):
    muster("subscription", "create", "prod", "--display-name", "All regions", "--tag", "team=data")
    muster(
        "resource-group", "create", "fleet", "--location", "europe", "--tag", "a=1", "--tag", "b=2"
    )
    assert "is there already" in muster("subscription", "create", "prod", code=1)

    first, group = (
        muster.json("subscription", "show", "prod"),
        muster.json("resource-group", "show", "fleet"),
    )
    muster("subscription", "update", "prod", "--tag", "cost=7")
    muster("resource-group", "update", "fleet", "--tag", "b=3", "--remove-tag", "a")

    assert differences(first, muster.json("subscription", "show", "prod")) == {"tags.cost"}
    assert differences(group, muster.json("resource-group", "show", "fleet")) == {
        "tags.a",
        "tags.b",
    }
    muster("subscription", "update", "prod", "--reset", "display-name", "--reset", "tag")
    assert muster.json("subscription", "show", "prod")["displayName"] == "prod"
    assert muster.rows("subscription", "list") == [
        {"name": "prod", "display_name": "prod", "state": "Registered", "tags": ""}
    ]
    [shown] = muster.rows("resource-group", "list")
    assert (shown["name"], shown["subscription"], shown["tags"]) == ("fleet", "prod", "b=3")

    muster("resource-group", "delete", "fleet", "--yes")
    assert muster.rows("resource-group", "list") == []
    muster("subscription", "delete", "prod", "--yes")
    assert muster.json("subscription", "show", "prod")["state"] == "Deleted"


def test_a_database_keeps_everything_that_an_update_does_not_name(fleet):
    muster = fleet
    muster("pool", "create", "eu1/gold", "--pattern", "gold_*")
    muster(
        "database", "create", "eu1/tenant_7", "--label", "tier=gold", "--label", "region=eu",
        "--deletion-policy", "drop", "--pool", "gold", "--tag", "a=1", "--tag", "b=2",
    )  # fmt: skip
    before = muster.json("database", "show", "eu1/tenant_7")

    muster("database", "update", "eu1/tenant_7", "--label", "tier=silver")
    after = muster.json("database", "show", "eu1/tenant_7")
    assert differences(before, after) == {"properties.labels.tier"}
    assert after["properties"]["elasticPoolId"].endswith("/servers/eu1/elasticPools/gold")

    muster(
        "database",
        "update",
        "eu1/tenant_7",
        "--tag",
        "b=3",
        "--remove-label",
        "region",
        "--reset",
        "pool",
    )
    last = muster.json("database", "show", "eu1/tenant_7")
    assert differences(after, last) == {
        "tags.b",
        "properties.labels.region",
        "properties.elasticPoolId",
    }
    [row] = muster.rows("database", "list", "--server", "eu1")
    assert (row["name"], row["deletion_policy"], row["labels"]) == (
        "tenant_7",
        "Drop",
        "tier=silver",
    )

    states = [each["to"] for each in muster.rows("database", "history", "eu1/tenant_7")]
    assert states[0] == "looking" and states[-1] == "ready"
    assert [
        each["to"] for each in muster.rows("database", "history", "eu1/tenant_7", "--top", "1")
    ] == ["ready"]
    muster("database", "delete", "eu1/tenant_7", "--yes")
    assert "did you mean" not in muster("database", "show", "eu1/tenant_7", code=6)


def test_a_pool_keeps_everything_that_an_update_does_not_name(fleet):
    muster = fleet
    muster(
        "pool", "create", "eu1/gold", "--database", "a", "--database", "b", "--pattern", "gold_*",
        "--max-connections", "5", "--slots-per-database", "2", "--label", "x=y", "--tag", "a=1",
    )  # fmt: skip
    before = muster.json("pool", "show", "eu1/gold")

    muster("pool", "update", "eu1/gold", "--max-connections", "8", "--reset", "pattern")

    after = muster.json("pool", "show", "eu1/gold")
    assert differences(before, after) == {"properties.maxConnections", "properties.databasePattern"}
    [row] = muster.rows("pool", "list")
    assert (row["databases"], row["max_connections"], row["pattern"]) == ("a, b", "8", "")
    muster("pool", "delete", "eu1/gold", "--yes")
    assert muster.rows("pool", "list") == []
