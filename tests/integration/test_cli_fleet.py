"""The fleet at the command line, against a running API: created, updated, shown and deleted by commands alone."""

import pytest

from tests.support.command_line import CommandLine, differences
from tests.support.running_api import TOKEN, serve_in_thread


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


SERVER = (
    "--max-connections", "5", "--connections-per-second", "2.5", "--slots-per-database", "3", "--label", "a=1",
    "--label", "b=2", "--tag", "x=y", "--deletion-policy", "Drop", "--maintenance-database", "postgres",
    "--pooling", "session", "--job-credential", "login",
)  # fmt: skip


def test_a_server_keeps_everything_that_an_update_does_not_name(fleet, targets):
    muster = fleet
    muster("server", "update", "eu1", *SERVER)
    before = muster.json("server", "show", "eu1")
    assert before["properties"]["endpoint"]["pooling"] == "session"

    muster("server", "update", "eu1", "--max-connections", "8", "--remove-label", "a", "--disable")
    after = muster.json("server", "show", "eu1")
    places = {"properties.maxConnections", "properties.labels.a", "properties.disabled"}
    assert differences(before, after) == places
    muster("server", "update", "eu1", "--enable", "--reset", "pooling", "--reset", "job-credential")
    places = {"properties.disabled", "properties.endpoint.pooling", "properties.jobCredential"}
    assert differences(after, muster.json("server", "show", "eu1")) <= places

    assert "use --host" not in muster("server", "update", "eu1", code=1)
    refused = muster("server", "update", "eu1", "--host", "localhost", code=1)
    assert "administratorLoginPassword" in refused and "give it again" in refused
    muster("server", "check", "eu1")
    names = {each["database"]: each for each in muster.rows("server", "discover", "eu1")}
    assert names["postgres"]["target"] == "false" and names["postgres"]["reason"]
    assert muster.rows("server", "history", "eu1")[-1]["to"] == "ready"
    assert muster.rows("server", "check-name", "eu1")[0]["available"] == "false"
    assert muster.rows("server", "check-name", "eu2")[0]["available"] == "true"
    muster("server", "delete", "eu1", "--yes")
    assert muster.rows("server", "list") == []
    assert "eu1" in muster("server", "delete", "eu1", "--yes", code=6)


def test_hosts_take_the_place_of_a_host_and_back(fleet, targets, tmp_path):
    muster = fleet
    again = ("--admin-password-file", str(tmp_path / "password"))
    muster("server", "update", "eu1", "--hosts", "127.0.0.1,127.0.0.2", *again)
    endpoint = muster.json("server", "show", "eu1")["properties"]["endpoint"]
    assert endpoint["hosts"] == ["127.0.0.1", "127.0.0.2"] and "host" not in endpoint
    assert endpoint["port"] == targets.port

    muster("server", "update", "eu1", "--host", "127.0.0.1", *again)

    endpoint = muster.json("server", "show", "eu1")["properties"]["endpoint"]
    assert endpoint["host"] == "127.0.0.1" and "hosts" not in endpoint
