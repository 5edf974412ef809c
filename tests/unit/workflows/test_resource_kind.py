from hypothesis import given
from hypothesis import strategies as st

from workflows.resource_kind import merged, take_secrets
from workflows.model.server import ServerProperties

json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=10,
)


def test_secrets_are_taken_out_at_every_depth():
    given_properties = {
        "administratorLogin": "ada",
        "administratorLoginPassword": "s3cret-pass",
        "endpoint": {"host": "db.example", "clientKey": "-----KEY"},
    }

    rest, secrets = take_secrets(given_properties, ServerProperties)

    assert rest == {"administratorLogin": "ada", "endpoint": {"host": "db.example"}}
    assert secrets == {
        "administratorLoginPassword": "s3cret-pass",
        "endpoint.clientKey": "-----KEY",
    }


def test_an_empty_secret_counts_as_none_given():
    rest, secrets = take_secrets({"administratorLoginPassword": ""}, ServerProperties)

    assert (rest, secrets) == ({}, {})


def test_merge_patch_removes_by_null_merges_objects_and_replaces_the_rest():
    old = {"a": 1, "b": {"c": 1, "d": 2}, "e": [1]}

    new = merged(old, {"a": None, "b": {"c": 3}, "e": [2]})

    assert new == {"b": {"c": 3, "d": 2}, "e": [2]}
    assert old["b"] == {"c": 1, "d": 2}


@given(json, json)
def test_a_merge_patch_applied_twice_changes_nothing_more(old, patch):
    once = merged(old, patch)

    assert merged(once, patch) == once
