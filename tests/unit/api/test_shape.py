"""Bodies against the declared structs: everything wrong at once, nothing unknown inside."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import envelope
from api.resources.authorization import ROLE_ASSIGNMENTS
from api.resources.databases import DATABASES
from api.resources.servers import SERVERS
from api.resources.steps import JOB_STEPS
from api.resources.subscriptions import SUBSCRIPTIONS
from muster.core.errors import InvalidRequest
from muster.core.ids import ResourceId
from workflows.model.resource import Body

ID = ResourceId.parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers/eu1")
STEP = ID.child(("jobAgents", "a"), ("jobs", "j"), ("steps", "s"))


def read(given: dict[str, Any], *, merge: bool = False) -> Body:
    return envelope.read(SERVERS, ID, given, merge=merge)


def refused(given: dict[str, Any], *, merge: bool = False) -> dict[str, tuple[str, str]]:
    with pytest.raises(InvalidRequest) as error:
        read(given, merge=merge)
    fault = error.value
    found = fault.details or [fault]
    return {str(one.target): (one.code, one.message) for one in found}


def test_a_good_body_comes_through() -> None:
    found = read(dict(SERVERS.example))

    assert found.location == "westeurope"
    assert found.properties == SERVERS.example["properties"]


def test_everything_wrong_is_told_at_once() -> None:
    found = refused(
        {
            "location": 1,
            "tags": {"a": 2},
            "colour": "red",
            "properties": {
                "maxConnections": "20",
                "endpoint": {"port": 1.5, "sslMode": "maybe", "hosts": ["a", 2]},
                "disabled": 0,
                "adminstratorLogin": "x",
            },
        }
    )

    assert set(found) == {
        "location",
        "tags.a",
        "colour",
        "properties.maxConnections",
        "properties.endpoint.port",
        "properties.endpoint.sslMode",
        "properties.endpoint.hosts[1]",
        "properties.disabled",
        "properties.adminstratorLogin",
    }
    assert found["properties.endpoint.sslMode"][0] == "InvalidParameterValue"
    assert found["properties.maxConnections"][0] == "InvalidRequestContent"


def test_a_typo_is_told_with_the_nearest_name() -> None:
    found = refused({"properties": {"adminstratorLogin": "x"}})

    assert "'administratorLogin'" in found["properties.adminstratorLogin"][1]
    assert "'location'" in refused({"Location": "x"})["Location"][1]


def test_read_only_properties_are_ignored_whatever_they_hold() -> None:
    sent_back = {"state": 7, "provisioningState": "Failed", "conditions": {}, "lastError": None}
    found = read({"systemData": {}, "etag": "x", "kind": "v12", "properties": sent_back})

    assert found.properties == {}


@pytest.mark.parametrize(
    "identity",
    [
        {"id": ID.text.upper(), "name": "EU1", "type": "microsoft.sql/SERVERS"},
        {"id": None, "name": None},
    ],
)
def test_identity_equal_to_the_url_is_accepted(identity: dict[str, Any]) -> None:
    assert read(identity) == Body()


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", "/subscriptions/other"), ("name", "eu2"), ("type", "Microsoft.Sql/x"), ("name", 1)],
)
def test_identity_other_than_the_url_is_refused(name: str, value: Any) -> None:
    assert refused({name: value})[name][0] == "InvalidRequestContent"


def test_null_is_absent_in_put_and_kept_in_patch() -> None:
    body = {
        "location": None,
        "tags": None,
        "properties": {"labels": None, "endpoint": {"host": None}},
    }

    assert read(body).properties == {"endpoint": {}}
    assert read(body, merge=True).properties == {"labels": None, "endpoint": {"host": None}}
    assert read(body).tags is None
    assert read(body, merge=True).tags == {}


def test_a_label_can_be_removed_by_null_in_patch_only() -> None:
    body = {"properties": {"labels": {"a": None}}}

    assert read(body, merge=True).properties == {"labels": {"a": None}}
    assert "properties.labels.a" in refused(body)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, True, "5", 5.0, [], {}])
def test_integers_are_integers_of_32_bits(value: Any) -> None:
    assert "properties.maxConnections" in refused({"properties": {"maxConnections": value}})


def test_sizes_in_bytes_have_64_bits() -> None:
    id = ID.child(("databases", "d"))
    found = envelope.read(DATABASES, id, {"properties": {"maxSizeBytes": 2**40}}, merge=False)

    assert found.properties == {"maxSizeBytes": 2**40}


def test_required_properties_are_missed_in_put() -> None:
    id = ResourceId.parse("/providers/Microsoft.Authorization/roleAssignments/x")

    with pytest.raises(InvalidRequest) as error:
        envelope.read(ROLE_ASSIGNMENTS, id, {}, merge=False)

    assert [one.target for one in error.value.details] == [
        "properties.principalId",
        "properties.roleDefinitionId",
    ]


def test_a_subscription_has_its_properties_at_the_top() -> None:
    id = ResourceId.parse("/subscriptions/s")
    body = {"displayName": "x", "state": "Warned", "subscriptionId": "ignored", "tags": {"a": "b"}}

    found = envelope.read(SUBSCRIPTIONS, id, body, merge=False)

    assert found == Body(tags={"a": "b"}, properties={"displayName": "x", "state": "Warned"})
    with pytest.raises(InvalidRequest):
        envelope.read(SUBSCRIPTIONS, id, {"properties": {}}, merge=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
)
NAMES = st.sampled_from(["properties", "location", "tags", "id", "identity", "sku", "x"])
FIELDS = st.sampled_from([*SERVERS.visible, "state", "nope"])


@given(
    st.dictionaries(NAMES, JSON | st.dictionaries(FIELDS, JSON, max_size=4), max_size=5),
    st.booleans(),
)
def test_no_body_surprises_the_checks(given: dict[str, Any], merge: bool) -> None:
    try:
        found = read(given, merge=merge)
    except InvalidRequest as wrong:
        assert wrong.target
    else:
        assert found.properties.keys() <= SERVERS.visible | {"administratorLoginPassword"}


@pytest.mark.parametrize("guard", [True, False, "job"])
def test_a_guard_is_a_boolean_or_a_word(guard: Any) -> None:
    body = {"properties": {**JOB_STEPS.example["properties"], "guard": guard}}

    assert envelope.read(JOB_STEPS, STEP, body, merge=False).properties["guard"] == guard


@pytest.mark.parametrize("guard", ["run", 1, {}])
def test_any_other_guard_is_refused(guard: Any) -> None:
    body = {"properties": {**JOB_STEPS.example["properties"], "guard": guard}}

    with pytest.raises(InvalidRequest, match="one of true, false, job") as error:
        envelope.read(JOB_STEPS, STEP, body, merge=False)
    assert error.value.target == "properties.guard"
