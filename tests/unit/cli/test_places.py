"""Which account is meant."""

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, SERVER, SUBSCRIPTION, a_server, an_account, listed

ELSEWHERE = SERVER.replace("fleet-1", "fleet-2")


@pytest.fixture
def two_servers(rest):
    """Two servers with an account each."""
    rest.on(
        "GET",
        f"{SUBSCRIPTION}/providers/Microsoft.Sql/servers",
        listed(a_server(), a_server("fleet-2")),
    )
    rest.on(
        "GET",
        f"{ELSEWHERE}/jobAgents",
        listed(an_account("demo", "fleet-2"), an_account("other", "fleet-2")),
    )
    for path in (ACCOUNT, f"{ELSEWHERE}/jobAgents/demo", f"{ELSEWHERE}/jobAgents/other"):
        rest.on("GET", f"{path}/jobs", listed())
    return rest


def path_of(rest):
    return rest.requests[-1].url.path.removesuffix("/jobs")


def test_the_only_account_needs_no_name(muster, rest):
    rest.on("GET", f"{ACCOUNT}/jobs", listed())

    assert muster("job", "list")[0] == 0
    assert path_of(rest) == ACCOUNT


def test_of_several_the_names_are_told(muster, two_servers):
    code, _, err = muster("job", "list")

    assert code == 1
    assert "which account?" in err and "fleet-1/demo, fleet-2/demo, fleet-2/other" in err


@pytest.mark.parametrize("wanted", ["OTHER", "fleet-2/other", f"{ELSEWHERE}/jobAgents/other"])
def test_an_account_goes_by_name_server_and_id(muster, two_servers, monkeypatch, wanted):
    monkeypatch.setenv("MUSTER_ACCOUNT", "demo")

    assert muster("job", "list", "--account", wanted)[0] == 0
    assert path_of(two_servers) == f"{ELSEWHERE}/jobAgents/other"


def test_a_name_of_two_accounts_is_a_question(muster, two_servers, monkeypatch):
    monkeypatch.setenv("MUSTER_ACCOUNT", "demo")

    assert "fleet-1/demo, fleet-2/demo" in muster("job", "list")[2]
    assert muster("job", "list", "--account", "fleet-2/demo")[0] == 0
    assert path_of(two_servers) == f"{ELSEWHERE}/jobAgents/demo"


def test_an_id_is_taken_without_a_look(muster, rest):
    rest.on("GET", f"{ACCOUNT}/jobs", listed())

    muster("job", "list", "--account", ACCOUNT)

    assert len(rest.requests) == 1


def test_no_account_is_not_found(muster, rest):
    rest.on("GET", f"{SERVER}/jobAgents", listed())

    assert muster("job", "list")[0] == 6
    assert muster("job", "list", "--account", "none")[::2] == (
        6,
        "muster: there is no account 'none'\n",
    )
