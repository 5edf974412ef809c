"""Whatever bytes come, the table gives an id of ours or one of three refusals."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.endpoint import table
from api.errors import ProtocolFault
from api.path import Table
from api.resources import RESOURCES
from muster.core.errors import Fault, InvalidRequest, NotFound

TABLE = Table(table(RESOURCES))
SERVER = "/subscriptions/S1/resourceGroups/My-Group/providers/Microsoft.Sql/servers/eu1"

NAMES = st.text(
    st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="/"), min_size=1, max_size=40
).filter(lambda text: text not in {".", ".."})


def test_fixed_segments_are_made_canonical_and_names_keep_their_case() -> None:
    found = TABLE.match("GET", SERVER.upper().encode())

    assert found.endpoint.operation_id == "Servers_Get"
    assert found.id.text == SERVER.replace("My-Group", "MY-GROUP").replace("eu1", "EU1")


@given(NAMES, NAMES)
def test_a_name_is_decoded_exactly_once(server: str, database: str) -> None:
    base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Sql/servers"
    path = f"{base}/{quote(server, safe='')}/databases/{quote(database, safe='')}"

    found = TABLE.match("GET", path.encode())

    assert found.id.pairs[-2:] == (("servers", server), ("databases", database))


@given(st.binary(max_size=200).map(lambda raw: b"/" + raw), st.sampled_from(["GET", "PUT", "FOO"]))
def test_no_path_surprises_the_table(raw: bytes, method: str) -> None:
    try:
        found = TABLE.match(method, raw)
    except Fault as refused:
        assert isinstance(refused, InvalidRequest | NotFound)
    else:
        assert found.endpoint.method == method


@given(
    st.lists(
        st.sampled_from(
            [
                b"subscriptions",
                b"s",
                b"..",
                b"",
                b"%2e%2e",
                b"%2F",
                b"providers",
                b"Microsoft.Sql",
                b"resourceGroups",
                b"servers",
                b"databases",
                b"%00",
                b"%",
                b"\xff",
                b"register",
            ]
        ),
        max_size=12,
    )
)
def test_near_misses_do_not_surprise_it_either(segments: list[bytes]) -> None:
    try:
        found = TABLE.match("GET", b"/" + b"/".join(segments))
    except (InvalidRequest, NotFound):
        return
    assert not any(name in {"", ".", ".."} for pair in found.id.pairs for name in pair)


@pytest.mark.parametrize(
    "path",
    [
        "//subscriptions/s",
        "/subscriptions//s",
        "/subscriptions/s//",
        "/subscriptions/.",
        "/subscriptions/..",
        "/subscriptions/%2e%2e",
        "/subscriptions/a%2Fb",
        "/subscriptions/a%00b",
        "/subscriptions/a%0Ab",
        "/subscriptions/a%7F",
        "/subscriptions/%ff",
        "/subscriptions/%c0%ae",
        "/subscriptions/100%",
        "/subscriptions/%zz",
        "/subscriptions/s/../t",
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        TABLE.match("GET", path.encode())

    assert refused.value.code == "InvalidResourceId"


def test_a_percent_sign_that_was_encoded_is_not_decoded_again() -> None:
    found = TABLE.match("GET", b"/subscriptions/a%252Fb")

    assert found.id.name == "a%2Fb"


def test_one_trailing_slash_changes_nothing() -> None:
    assert TABLE.match("GET", f"{SERVER}/".encode()).id == TABLE.match("GET", SERVER.encode()).id


def test_encoded_fixed_segments_are_the_same_segments() -> None:
    path = SERVER.replace("servers", "%73ervers")

    assert TABLE.match("GET", path.encode()).id.text == SERVER


def test_a_wrong_verb_names_the_right_ones() -> None:
    with pytest.raises(ProtocolFault) as refused:
        TABLE.match("POST", SERVER.encode())

    assert refused.value.status == 405
    assert refused.value.code == "HttpMethodNotSupported"
    assert refused.value.headers == [(b"allow", b"DELETE, GET, PATCH, PUT")]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/", "InvalidResourceId"),
        ("/nothing", "ResourceNotFound"),
        ("/subscriptions/s/providers/Microsoft.Nope/x", "InvalidResourceType"),
        (SERVER + "/unknownThings/x", "InvalidResourceType"),
        ("/subscriptions/s/resourceGroups/g/providers", "ResourceNotFound"),
    ],
)
def test_unknown_places_are_refused(path: str, code: str) -> None:
    with pytest.raises(Fault) as refused:
        TABLE.match("GET", path.encode())

    assert refused.value.code == code


@pytest.mark.parametrize(
    ("method", "path", "operation", "id"),
    [
        ("GET", f"{SERVER}/databases", "Databases_ListByServer", SERVER),
        ("POST", f"{SERVER}/discover", "Servers_Discover", SERVER),
        ("GET", f"{SERVER}/history", "Servers_ListHistory", SERVER),
        ("GET", "/subscriptions/s/providers", "Providers_List", "/subscriptions/s"),
        (
            "GET",
            "/subscriptions/s/providers/microsoft.SQL",
            "Providers_Get",
            "/subscriptions/s/providers/Microsoft.Sql",
        ),
        (
            "GET",
            f"{SERVER}/providers/Microsoft.Authorization/roleAssignments",
            "RoleAssignments_ListAtServer",
            SERVER,
        ),
        ("GET", "/subscriptions", "Subscriptions_List", "/"),
        (
            "GET",
            "/subscriptions/s/providers/Microsoft.Insights/eventtypes/management/values",
            "ActivityLogs_ListAtSubscription",
            "/subscriptions/s",
        ),
        (
            "POST",
            "/subscriptions/s/providers/Microsoft.Sql/checkNameAvailability",
            "Servers_CheckNameAvailability",
            "/subscriptions/s",
        ),
    ],
)
def test_lists_and_actions_have_the_id_they_are_about(
    method: str, path: str, operation: str, id: str
) -> None:
    found = TABLE.match(method, path.encode())

    assert found.endpoint.operation_id == operation
    assert found.id.text == id
