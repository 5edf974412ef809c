import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.errors import InvalidRequest
from muster.core.label_selector import LabelSelector, Requirement, parse

GOLD = {"tier": "gold", "region": "eu", "empty": ""}

keys = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,9}[A-Za-z0-9])?", fullmatch=True)
values = st.from_regex(r"[A-Za-z0-9._/:@+äß|*-]{1,9}", fullmatch=True)
selectors = st.builds(
    LabelSelector,
    st.lists(
        st.builds(Requirement, keys, st.booleans(), st.lists(values, max_size=4).map(tuple)),
        min_size=1,
        max_size=5,
    ).map(tuple),
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tier=gold", True),
        ("tier==gold", True),
        ("tier = silver", False),
        ("tier!=silver", True),
        ("tier!=gold", False),
        ("owner!=me", True),
        ("region in (eu,us)", True),
        ("region in(us)", False),
        ("region notin ( us , asia )", True),
        ("region notin (eu)", False),
        ("owner notin (me)", True),
        ("tier", True),
        ("empty", True),
        ("owner", False),
        ("!owner", True),
        ("! tier", False),
        ("tier=gold,region in (eu,us),!legacy", True),
        ("tier=gold, region=us", False),
        (" tier=gold ,!owner ", True),
        ("in,notin", False),
    ],
)
def test_a_selector_means_what_it_means_in_kubernetes(text, holds):
    assert parse(text).matches(GOLD) is holds


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (" ", 2),
        (",", 1),
        ("tier=", 1),
        ("tier=gold,", 11),
        ("tier=gold,,a", 11),
        ("tier=gold;region=eu", 1),
        ("tier=go ld", 1),
        ("a=b, tier in eu", 6),
        ("a=b,tier in ()", 5),
        ("a=b,tier in (eu", 5),
        ("a=b,tier in (eu,)", 5),
        ("tier In (eu)", 1),
        ("tier<5", 1),
        ("!tier=gold", 1),
        ("!!tier", 1),
        ("-tier", 1),
        ("tier-", 1),
        ("ti\ter", 1),
        ("x" * 64, 1),
        ("a='b'", 1),
    ],
)
def test_what_can_t_be_read_is_refused_with_its_position_and_an_example(text, position):
    with pytest.raises(InvalidRequest) as refused:
        parse(text)

    assert f"position {position}:" in refused.value.message
    assert "region in (eu,us)" in refused.value.message


@pytest.mark.parametrize("text", ["", "a=" + "x" * 2047, ",".join(["a"] * 33)])
def test_a_selector_has_a_bounded_length(text):
    with pytest.raises(InvalidRequest, match="has 1 to 2048 bytes|at most 32 requirements"):
        parse(text)


@given(selectors)
def test_a_selector_that_is_written_is_read_again(selector):
    assert parse(str(selector)) == selector
