import pytest

from muster.core.enumeration import PROVIDER_DATABASES, left_out


def a_database(name: str, **more: bool) -> dict:
    usual = {"template": False, "invalid": False, "connectable": True, "granted": True}
    return {"name": name} | usual | more


@pytest.mark.parametrize("name", ["postgres", "Template1", "rdsadmin", "azure_sys"])
def test_a_database_of_the_server_or_its_provider_is_left_out(name):
    assert left_out(a_database(name), PROVIDER_DATABASES) == "ServersOwn"


def test_the_list_of_the_operator_is_the_whole_list():
    own = ("Vendor_Admin",)

    reasons = [left_out(a_database(name), own) for name in ("vendor_admin", "rdsadmin", "postgres")]

    assert reasons == ["ServersOwn", None, "ServersOwn"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({"template": True}, "Template"),
        ({"invalid": True}, "Invalid"),
        ({"connectable": False}, "ConnectionsNotAllowed"),
        ({"granted": False}, "ConnectNotGranted"),
        ({}, None),
    ],
)
def test_a_database_that_no_job_can_use_is_left_out_with_the_reason(state, reason):
    assert left_out(a_database("a", **state), ()) == reason
