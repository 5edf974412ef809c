"""Where `muster server add` puts a server: nothing is made because a name was misspelt."""

import pytest

from muster.cli import main as cli
from tests.unit.cli.fake_rest import SUBSCRIPTION, a_server, listed

GROUPS = f"{SUBSCRIPTION}/resourceGroups"
ADD = ("server", "add", "eu1", "--host", "db.example")


@pytest.fixture
def installation(rest):
    """The subscription s1 with the resource group prod."""
    rest.on("GET", SUBSCRIPTION, {"id": SUBSCRIPTION})
    rest.on("GET", GROUPS, listed({"id": f"{GROUPS}/prod"}))
    for path in ("/subscriptions/s2", f"{GROUPS}/prodd", "/subscriptions/s2/resourceGroups/prod"):
        rest.on("PUT", path, {})
        for parent in (path, f"{path}/resourceGroups/prod"):
            rest.on("PUT", f"{parent}/providers/Microsoft.Sql/servers/eu1", a_server("eu1"))
    return rest


def written(rest):
    return [each.url.path for each in rest.requests if each.method == "PUT"]


def test_a_misspelt_subscription_makes_nothing(muster, installation):
    code, _, err = muster(*ADD, "--subscription", "s2", "--resource-group", "prod")

    assert (code, err) == (6, "muster: there is no subscription 's2'; did you mean s1? It is created with --create\n")  # fmt: skip
    assert written(installation) == []


def test_a_misspelt_resource_group_makes_nothing(muster, installation):
    code, _, err = muster(*ADD, "--resource-group", "prodd")

    assert (code, err) == (6, "muster: there is no resource group 'prodd'; did you mean prod? It is created with --create\n")  # fmt: skip
    assert written(installation) == []


def test_create_makes_what_is_absent(muster, installation):
    assert muster(*ADD, "--resource-group", "prodd", "--create")[0] == 0
    assert written(installation)[0] == f"{GROUPS}/prodd"


@pytest.mark.parametrize(("answer", "code", "writes"), [("n\n", 1, 0), ("\n", 1, 0), ("y\n", 0, 2)])
def test_on_a_terminal_it_is_asked(installation, terminal, answer, code, writes):
    streams = terminal(answer)

    assert cli.main([*ADD, "--resource-group", "prodd"]) == code

    assert "did you mean prod?" in streams["stderr"].getvalue()
    assert "Create the resource group 'prodd'? [y/N]" in streams["stderr"].getvalue()
    assert len(written(installation)) == writes


def typing(monkeypatch, *answers):
    prompts, left = [], list(answers)

    def getpass(prompt):
        prompts.append(prompt)
        return left.pop(0)

    monkeypatch.setattr("getpass.getpass", getpass)
    return prompts


NEW = ("server", "add", "eu1", "--admin", "root", "--resource-group", "prodd", "--create")


def test_the_password_of_a_server_that_is_made_is_asked_for_twice(
    installation, terminal, monkeypatch
):
    prompts = typing(monkeypatch, "correct horse", "correct horse")
    terminal()

    assert cli.main(NEW) == 0
    assert prompts == ["Password of root: ", "Password of root again: "]


def test_two_passwords_that_differ_change_nothing(installation, terminal, monkeypatch):
    typing(monkeypatch, "correct horse", "correct hrose")
    streams = terminal()

    assert cli.main(NEW) == 1
    assert "the two passwords differ" in streams["stderr"].getvalue()
    assert written(installation) == []


def test_the_password_of_a_server_that_is_there_is_asked_for_once(
    installation, terminal, monkeypatch
):
    prompts = typing(monkeypatch, "correct horse")
    terminal()

    assert cli.main([*NEW, "--host", "db.example"]) == 0
    assert prompts == ["Password of root: "]
