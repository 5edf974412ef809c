import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.errors import InvalidRequest
from muster.core.ids import TENANT, ResourceId

SERVER = "/subscriptions/S/resourceGroups/G/providers/Microsoft.Sql/servers/Srv"


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("/subscriptions/s", "Microsoft.Resources/subscriptions"),
        ("/subscriptions/s/resourceGroups/g", "Microsoft.Resources/resourceGroups"),
        (SERVER, "Microsoft.Sql/servers"),
        (SERVER + "/databases/d", "Microsoft.Sql/servers/databases"),
        (SERVER + "/providers/Microsoft.Authorization/roleAssignments/r", "Microsoft.Authorization/roleAssignments"),
    ],
)  # fmt: skip
def test_the_type_is_read_from_the_id(text, type):
    assert ResourceId.parse(text).type == type


def test_ids_compare_without_case_and_print_as_given():
    a, b = ResourceId.parse(SERVER), ResourceId.parse(SERVER.upper())

    assert a == b
    assert hash(a) == hash(b)
    assert str(a) == SERVER
    assert a != SERVER


def test_the_way_up():
    id = ResourceId.parse(SERVER + "/databases/d")

    assert id.parent.text == SERVER
    assert id.parent.parent.text == "/subscriptions/S/resourceGroups/G"
    assert [a.text for a in id.ancestors()][-2:] == ["/subscriptions/S", "/"]
    assert id.upto("SERVERS").text == SERVER
    assert (id.subscription, id.resource_group, id.name) == ("S", "G", "d")
    assert id.named("nothing") is None
    assert TENANT.name == ""
    assert TENANT.type == "Microsoft.Resources/tenants"
    with pytest.raises(KeyError):
        id.upto("jobs")


@pytest.mark.parametrize(
    "text", ["", "x", "/subscriptions", "/a//b/c", "/a/..", "/a/ ", "/./b", "a/b"]
)
def test_what_is_no_id_is_refused_naming_the_field(text):
    with pytest.raises(InvalidRequest) as refused:
        ResourceId.parse(text, target="properties.x")
    assert (refused.value.code, refused.value.target) == ("InvalidResourceId", "properties.x")


name = st.text(min_size=1, max_size=20).filter(
    lambda s: "/" not in s and s.strip() and s not in {".", ".."}
)


@given(st.lists(st.tuples(name, name), min_size=1, max_size=5))
def test_an_id_reads_back_as_it_was_written(pairs):
    assert ResourceId.parse(ResourceId(tuple(pairs)).text).pairs == tuple(pairs)
