"""`muster account servers`, `allow-server` and `disallow-server`."""

from tests.unit.cli.fake_rest import ACCOUNT, SERVER, SUBSCRIPTION


def test_the_servers_of_an_account_are_listed(muster, rest):
    entry = {"id": SERVER, "name": "fleet-1", "addedBy": "ops", "addedAt": "2031-01-01T00:00:00Z"}
    rest.on("GET", f"{ACCOUNT}/allowedServers", {"value": [entry]})

    assert muster("account", "servers", "-o", "tsv")[1].splitlines() == [
        "server\tadded_by\tadded_at",
        "fleet-1\tops\t2031-01-01T00:00:00Z",
    ]


def test_a_server_is_allowed_and_taken_away(muster, rest):
    answer = {"server": "db-7", "allowed": True, "changed": True}
    rest.on("POST", f"{ACCOUNT}/allowServer", answer)
    rest.on("POST", f"{ACCOUNT}/disallowServer", answer | {"allowed": False})

    assert muster("account", "allow-server", "db-7")[0] == 0
    assert muster("account", "disallow-server", "db-7")[0] == 0
    assert muster("account", "disallow-server", "db-7", "--force")[0] == 0

    assert rest.sent("POST", f"{ACCOUNT}/allowServer") == [{"server": "db-7"}]
    assert rest.sent("POST", f"{ACCOUNT}/disallowServer") == [
        {"server": "db-7"},
        {"server": "db-7", "force": True},
    ]


def test_an_ancestor_without_properties_is_listed_by_its_name(muster, rest):
    above = {"id": SERVER, "name": "fleet-1", "type": "Microsoft.Sql/servers"}
    rest.on("GET", f"{SUBSCRIPTION}/providers/Microsoft.Sql/servers", {"value": [above]})

    code, printed, *_ = muster("server", "list", "-o", "tsv")

    assert (code, printed.splitlines()[1].split("\t")[0]) == (0, "fleet-1")
