"""`update`: only what is said is sent, and nothing of anybody else's is lost."""

import pytest

from tests.unit.cli.fake_rest import SERVER, SUBSCRIPTION, listed, refusal

DATABASE = f"{SERVER}/databases/tenant_7"
GROUP = f"{SUBSCRIPTION}/resourceGroups/fleet"
SHOWN = {"id": DATABASE, "name": "tenant_7", "location": "local", "tags": {"a": "1", "b": "2"},
         "properties": {"status": "Online", "labels": {"tier": "gold"}}}  # fmt: skip


@pytest.fixture
def database(rest):
    rest.on("GET", DATABASE, SHOWN)
    rest.on("PATCH", DATABASE, SHOWN)
    rest.on("GET", SERVER, {"id": SERVER, "name": "fleet-1", "properties": {"embedded": False}})
    return rest


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (["--label", "x=1=2"], {"labels": {"x": "1=2"}}),
        (["--label", "x=1", "--label", "y=", "--remove-label", "tier"],
         {"labels": {"x": "1", "y": "", "tier": None}}),
        (["--reset", "label"], {"labels": None}),
        (["--reset", "Deletion_Policy", "--reset", "pool"],
         {"deletionPolicy": None, "elasticPoolId": None}),
        (["--deletion-policy", "RETAIN"], {"deletionPolicy": "Retain"}),
        (["--pool", "a b"], {"elasticPoolId": f"{SERVER}/elasticPools/a%20b"}),
    ],
)  # fmt: skip
def test_only_what_is_said_is_sent(muster, database, words, sent):
    code, _, err = muster("database", "update", "fleet-1/tenant_7", *words)

    assert (code, err) == (0, "")
    assert database.sent("PATCH", DATABASE) == [{"properties": sent}]
    assert "if-match" not in database.requests[-1].headers


def test_tags_that_are_not_named_stay_and_a_change_in_between_is_refused(muster, database):
    assert (
        muster("database", "update", "fleet-1/tenant_7", "--tag", "b=3", "--remove-tag", "a")[0]
        == 0
    )

    assert database.sent("PATCH", DATABASE) == [{"tags": {"b": "3"}}]
    assert database.requests[-1].headers["if-match"]
    database.on("PATCH", DATABASE, refusal(412, "PreconditionFailed", "It was changed."))
    code, _, err = muster("database", "update", "fleet-1/tenant_7", "--tag", "b=3")
    assert (code, err) == (1, "muster: PreconditionFailed: It was changed.\n")


def test_all_tags_can_go(muster, database):
    assert muster("database", "update", "fleet-1/tenant_7", "--reset", "tag")[0] == 0

    assert database.sent("PATCH", DATABASE) == [{"tags": {}}]


def test_where_rest_has_no_patch_the_rest_is_put_back_under_its_etag(muster, rest):
    was = {
        "id": SUBSCRIPTION,
        "name": "s1",
        "displayName": "All",
        "state": "Registered",
        "tags": {"a": "1"},
    }
    rest.on("GET", SUBSCRIPTION, was)
    rest.on("PUT", SUBSCRIPTION, was)

    assert muster("subscription", "update", "s1", "--tag", "b=2", "--reset", "display-name")[0] == 0

    [sent] = rest.sent("PUT", SUBSCRIPTION)
    assert sent == {
        "id": SUBSCRIPTION,
        "name": "s1",
        "state": "Registered",
        "tags": {"a": "1", "b": "2"},
    }
    assert rest.requests[-1].headers["if-match"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "nothing to change was said; what can be changed: --label, --deletion-policy, --pool, --tag"),
        (["--label", "a=1", "--remove-label", "a"], "--label and --remove-label both name 'a'"),
        (["--pool", "p", "--reset", "pool"], "--pool and --reset pool say different things"),
        (["--label", "a=1", "--reset", "label"], "--label and --reset label say different things"),
        (["--label", "a"], "'a' is not KEY=VALUE"),
        (["--reset", "poll"], "did you mean pool?"),
    ],
)  # fmt: skip
def test_what_says_nothing_or_two_things_is_a_usage_error(muster, database, words, why):
    code, _, err = muster("database", "update", "fleet-1/tenant_7", *words)

    assert code == 1 and why in err
    assert [each.method for each in database.requests if each.method != "GET"] == []


@pytest.fixture
def a_group(rest):
    servers = f"{GROUP}/providers/Microsoft.Sql/servers"
    rest.on("GET", GROUP, {"id": GROUP, "name": "fleet"})
    rest.on("GET", servers, listed({"id": SERVER, "name": "fleet-1"}))
    rest.on("GET", f"{SERVER}/databases", listed({"id": DATABASE}, {"id": f"{DATABASE}1"}))
    rest.on("DELETE", GROUP, {})
    return rest


def test_a_delete_says_what_goes_with_it(muster, a_group, terminal):
    streams = terminal("n\n")

    muster("resource-group", "delete", "fleet")

    asked = streams["stderr"].getvalue()
    assert "Delete the resource group 'fleet': 1 server, 2 databases, 1 job account" in asked
    assert "nothing was deleted" in asked and a_group.sent("DELETE", GROUP) == []
    terminal("y\n")
    muster("resource-group", "delete", "fleet")
    assert len(a_group.sent("DELETE", GROUP)) == 1


def test_without_a_terminal_a_delete_needs_yes(muster, a_group):
    assert muster("resource-group", "delete", "fleet")[::2] == (
        1, "muster: deleting without a terminal needs --yes\n",
    )  # fmt: skip
    assert muster("resource-group", "delete", "fleet", "--yes")[:2] == (0, "deleted\nfleet\n")


@pytest.mark.parametrize(
    ("own", "of_server", "adopted", "embedded", "dropped"),
    [
        (None, None, None, False, False), (None, None, None, True, True),
        ("Drop", None, True, False, True), (None, "Drop", None, False, True),
        (None, "Drop", True, False, False), (None, None, True, True, False),
        ("Retain", "Drop", None, True, False),
    ],
)  # fmt: skip
def test_deleting_a_database_says_whether_it_is_dropped(
    muster, database, terminal, own, of_server, adopted, embedded, dropped
):
    database.on("GET", DATABASE, {"properties": {"deletionPolicy": own, "adopted": adopted}})
    database.on("GET", SERVER, {"properties": {"deletionPolicy": of_server, "embedded": embedded}})
    streams = terminal("n\n")

    muster("database", "delete", "fleet-1/tenant_7")

    assert ("it is dropped, with all its rows?" in streams["stderr"].getvalue()) is dropped
    assert ("it stays on its server" in streams["stderr"].getvalue()) is not dropped


def test_a_forced_delete_drops_what_is_used(muster, database):
    database.on("DELETE", DATABASE, {})

    assert muster("database", "delete", "fleet-1/tenant_7", "--yes", "--force")[0] == 0

    assert database.asked(DATABASE)[-1] == {"forceDeletionTypes": "Microsoft.Sql/servers/databases"}


@pytest.mark.parametrize("name", ["tenant_7", "fleet-1/"])
def test_a_database_is_named_with_its_server(muster, database, name):
    code, _, err = muster("database", "show", name)

    assert code == 1 and "expected SERVER/DATABASE" in err
