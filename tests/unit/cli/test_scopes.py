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
