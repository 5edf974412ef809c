"""Scopes of roles, locks and tokens: one option names one."""

import pytest

from tests.unit.cli.fake_rest import ACCOUNT, SERVER, SUBSCRIPTION, an_account, listed

LOCKS = "/providers/Microsoft.Authorization/locks"


@pytest.mark.parametrize(
    ("words", "scope"),
    [
        ([], ""), (["--scope", "/"], ""), (["--scope", f"{SERVER}/"], SERVER),
        (["--subscription", "s2"], "/subscriptions/s2"),
        (["--resource-group", "g 1"], f"{SUBSCRIPTION}/resourceGroups/g 1"),
        (["--resource-group", "g1", "--subscription", "s2"], "/subscriptions/s2/resourceGroups/g1"),
        (["--server", "fleet-1"], SERVER), (["--database", "fleet-1/a"], f"{SERVER}/databases/a"),
        (["--pool", "fleet-1/p"], f"{SERVER}/elasticPools/p"), (["--account", "demo"], ACCOUNT),
    ],
)  # fmt: skip
def test_an_option_names_the_scope(muster, rest, monkeypatch, words, scope):
    monkeypatch.setenv("MUSTER_ACCOUNT", "another")
    rest.on("GET", f"{scope}{LOCKS}", listed())

    assert muster("lock", "list", *words) == (0, "name  level  scope  notes\n", "")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--server", "a", "--account", "b"], "--server and --account name two scopes"),
        (["--server", "a", "--subscription", "b"], "--server and --subscription name two scopes"),
        (["--scope", "fleet-1"], "'fleet-1' is no resource id: it begins with /"),
        (["--account", "demo"], "which account?"),
    ],
)
def test_a_scope_that_is_none_or_two_is_refused(muster, rest, words, why):
    other = an_account(server="fleet-2")
    rest.on("GET", f"{SERVER}/jobAgents", listed(an_account(), other))

    code, _, err = muster("lock", "list", *words)

    assert code == 1 and why in err


WHICH = (
    "muster: which scope? Give --server, --database, --pool, --account, --resource-group, --subscription or --scope; "
    "--scope / is the whole installation\n"
)


@pytest.mark.parametrize(
    "words",
    [
        ("lock", "create", "keep", "--level", "ReadOnly"),
        ("lock", "update", "keep", "--level", "ReadOnly"),
        ("lock", "delete", "keep", "--yes"),
        ("role", "assignment", "create", "--role", "Reader", "--principal", "anna"),
        ("role", "assignment", "delete", "--role", "Reader", "--principal", "anna", "--yes"),
    ],
)
def test_what_writes_needs_a_scope_that_is_named(muster, rest, words):
    role = {"name": "r1", "properties": {"roleName": "Reader"}}
    rest.on("GET", "/providers/Microsoft.Authorization/roleDefinitions", listed(role))

    assert muster(*words) == (1, "", WHICH)
    assert {each.method for each in rest.requests} <= {"GET"}


def test_the_whole_installation_can_be_named(muster, rest):
    lock = {"id": f"{LOCKS}/keep", "name": "keep", "properties": {"level": "ReadOnly"}}
    rest.on("PUT", f"{LOCKS}/keep", lock)

    assert muster("lock", "create", "keep", "--level", "ReadOnly", "--scope", "/")[0] == 0


@pytest.mark.parametrize(("words", "scope"), [((), "ID"), (("--server", "fleet-1"), SERVER)])
def test_a_new_token_says_how_it_gets_a_role_at_its_scope(muster, rest, words, scope):
    properties = {"token": "t", "principalId": "p1", **({"scope": scope} if words else {})}
    path = "/providers/Microsoft.Authorization/serviceTokens/deploy"
    rest.on("PUT", path, {"name": "deploy", "properties": properties})

    code, _, err = muster("token", "create", "deploy", *words)

    hint = "--principal p1 --principal-type ServicePrincipal --role ROLE --scope"
    assert code == 0 and err.endswith(f"{hint} {scope}\n")
